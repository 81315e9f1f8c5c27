package tasks

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// Index knows how often which word stands in which file of a folder. It is safe for concurrent use.
type Index struct {
	root fs.FS

	mu    sync.RWMutex
	files map[string]map[string]int // path → word → count
}

// NewIndex returns an empty index of the folder's files.
func NewIndex(root fs.FS) *Index { return &Index{root: root, files: map[string]map[string]int{}} }

// Hit is one file that a search found.
type Hit struct {
	Path  string
	Count int // occurrences of the searched words
}

// Read reads a file into the index and returns how many words it has. It replaces what the index knew of the file rather
// than adding to it: a job may run twice, and the second run must change nothing.
func (x *Index) Read(ctx context.Context, path string) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	text, err := fs.ReadFile(x.root, path)
	if errors.Is(err, fs.ErrNotExist) {
		x.mu.Lock()
		delete(x.files, path)
		x.mu.Unlock()
	}
	if err != nil {
		return 0, err
	}
	counts, total := map[string]int{}, 0
	for _, word := range Words(string(text)) {
		counts[word]++
		total++
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.files[path] = counts
	return total, nil
}

// Size returns how many files are in the index, and how many words they have together.
func (x *Index) Size() (files, words int) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, counts := range x.files {
		for _, n := range counts {
			words += n
		}
	}
	return len(x.files), words
}

// Search returns the files that hold all words of the query, those that hold them most often first.
func (x *Index) Search(query string) []Hit {
	words := Words(query)
	if len(words) == 0 {
		return nil
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	var hits []Hit
	for path, counts := range x.files {
		hit := Hit{Path: path}
		for _, word := range words {
			if counts[word] == 0 {
				hit.Count = 0
				break
			}
			hit.Count += counts[word]
		}
		if hit.Count > 0 {
			hits = append(hits, hit)
		}
	}
	slices.SortFunc(hits, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Path, b.Path))
	})
	return hits
}

// Frequent returns up to n words that stand most often in the index, of those with at least letters letters.
func (x *Index) Frequent(n, letters int) []string {
	totals := map[string]int{}
	x.mu.RLock()
	for _, counts := range x.files {
		for word, count := range counts {
			if len([]rune(word)) >= letters && strings.IndexFunc(word, unicode.IsDigit) < 0 {
				totals[word] += count
			}
		}
	}
	x.mu.RUnlock()
	words := slices.SortedFunc(maps.Keys(totals), func(a, b string) int {
		return cmp.Or(cmp.Compare(totals[b], totals[a]), strings.Compare(a, b))
	})
	return words[:min(n, len(words))]
}

// Words returns the words of a text, runs of letters and digits, in lower case.
func Words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}
