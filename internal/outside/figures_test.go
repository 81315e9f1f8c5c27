package outside_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	copied = regexp.MustCompile(`(?s)<!-- bench: ([^\n]*?) -->\n(.*?)<!-- /bench -->`)
	fenced = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`|\n    [^\n]*")
	figure = regexp.MustCompile(`\d[\d.,]*(?: to \d[\d.,]*)? ?(?:k\b|ms\b|µs\b|ns\b|s\b|seconds|[KMG]B\b|bytes|jobs/s|jobs a second|%|×|times)`)
)

// underHeading gives what the results say under a heading.
func underHeading(results, heading string) (string, bool) {
	var text []string
	within := false
	for line := range strings.Lines(results) {
		if title, is := strings.CutPrefix(line, "#"); is {
			if within {
				break
			}
			within = strings.TrimSpace(strings.TrimLeft(title, "#")) == heading
		} else if within {
			text = append(text, line)
		}
	}
	return strings.TrimSpace(strings.Join(text, "")), text != nil
}

// stale lists what a page says of measurements that the results do not.
func stale(page, results string) (wrong []string) {
	for _, block := range copied.FindAllStringSubmatch(page, -1) {
		switch text, found := underHeading(results, block[1]); {
		case !found:
			wrong = append(wrong, "no results: "+block[1])
		case text != strings.TrimSpace(block[2]):
			wrong = append(wrong, "not as in the results: "+block[1])
		}
	}
	prose := fenced.ReplaceAllString(copied.ReplaceAllString(page, ""), "")
	if strings.Contains(prose, "<!-- bench:") || strings.Contains(prose, "<!-- /bench") {
		wrong = append(wrong, "a mark without its other half")
	}
	for _, found := range figure.FindAllString(prose, -1) {
		if !regexp.MustCompile(`(^|[^\d.,])` + regexp.QuoteMeta(found)).MatchString(results) {
			wrong = append(wrong, "not in the results: "+found)
		}
	}
	return wrong
}

func TestFiguresInPagesAreThoseOfTheResults(t *testing.T) {
	t.Parallel()
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(repository(t), name))
		require.NoError(t, err)
		return string(text)
	}
	results := read("bench/RESULTS.md")
	require.Equal(t, 1, strings.Count(results, "\nMeasured "), "the results must be those of one run")
	require.NotContains(t, results, "\nFailed: ")
	require.Empty(t, stale(read("README.md"), results), "run `make bench`, or leave the figure out")
	performance := read("docs/performance.md")
	require.Empty(t, stale(performance, results), "run `make bench`, or leave the figure out")
	require.NotEmpty(t, copied.FindAllString(performance, -1))
}

func TestStaleFiguresAreFound(t *testing.T) {
	t.Parallel()
	const results = "# Results\n\nMeasured.\n\n### drain\n\nAs it is\n\n| 120.5k | 0.44 |\n\n### other\n\n| 3 ms |\n"
	const table = "As it is\n\n| 120.5k | 0.44 |\n"
	for name, c := range map[string]struct {
		page string
		want []string
	}{
		"a table as it is":           {"<!-- bench: drain -->\n" + table + "<!-- /bench -->", nil},
		"an older table":             {"<!-- bench: drain -->\n| 99.1k |\n<!-- /bench -->", []string{"not as in the results: drain"}},
		"an empty one":               {"<!-- bench: drain -->\n<!-- /bench -->", []string{"not as in the results: drain"}},
		"one that is gone":           {"<!-- bench: enqueue -->\n<!-- /bench -->", []string{"no results: enqueue"}},
		"one that was never closed":  {"<!-- bench: drain -->\n" + table, []string{"a mark without its other half"}},
		"a figure of the results":    {"It does 120.5k a second, in 3 ms.", nil},
		"a figure of another run":    {"It does 119k, in 3 ms.", []string{"not in the results: 119k"}},
		"the tail of a longer one":   {"It does 20.5k.", []string{"not in the results: 20.5k"}},
		"a figure in code":           {"`-d 77ms` and\n```\nsleep 5s\n```\n", nil},
		"a version, a count, a year": {"Redis 6.2, 64 callers, 2026.", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, stale(c.page, results))
		})
	}
}
