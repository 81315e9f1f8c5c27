package gen

import (
	"slices"
	"strings"
)

// didYouMean returns ", did you mean X?" for the candidate nearest to word, and "" where none is near.
func didYouMean(word string, candidates []string) string {
	if best := nearest(word, candidates); best != "" {
		return ", did you mean " + best + "?"
	}
	return ""
}

// nearest returns the candidate with the fewest edits from word, if they are few for its length.
func nearest(word string, candidates []string) string {
	best, fewest := "", 3
	word = strings.ToLower(word)
	for _, c := range candidates {
		limit := min(2, min(len(c), len(word))/3) // of short words, others are near by chance
		if d := edits(word, strings.ToLower(c)); d <= limit && d < fewest {
			best, fewest = c, d
		}
	}
	return best
}

// edits counts the insertions, deletions, replacements and swaps of neighbours that turn a into b.
func edits(a, b string) int {
	ra, rb := []rune(a), []rune(b)
	if len(ra) > 40 || len(rb) > 40 {
		return 40 // no key is as long
	}
	before, last, row := make([]int, len(rb)+1), make([]int, len(rb)+1), make([]int, len(rb)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(ra); i++ {
		row[0] = i
		for j := 1; j <= len(rb); j++ {
			cost := 1
			if ra[i-1] == rb[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && ra[i-1] == rb[j-2] && ra[i-2] == rb[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(rb)]
}

// oneOf writes a list of words for a message: a, b and c.
func oneOf(words []string) string {
	words = slices.Sorted(slices.Values(words))
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}
