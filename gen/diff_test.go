package gen

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestUnified(t *testing.T) {
	t.Parallel()
	require.Empty(t, unified("a", "b", "same\n", "same\n"))
	require.Equal(t, "--- a\n+++ b\n@@ -0,0 +1,2 @@\n+x\n+y\n", unified("a", "b", "", "x\ny\n"))
	require.Equal(t, "--- a\n+++ b\n@@ -1 +0,0 @@\n-x\n", unified("a", "b", "x\n", ""))
	require.Equal(t, "--- a\n+++ b\n@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+x\n", unified("a", "b", "x", "x\n"))
	require.Equal(t, "--- a\n+++ b\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n",
		unified("a", "b", "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n"))
}

// TestUnifiedCanBeApplied applies diffs of random texts and requires the new text.
func TestUnifiedCanBeApplied(t *testing.T) {
	t.Parallel()
	text := rapid.Custom(func(t *rapid.T) string {
		s := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "", "d"}), 0, 40).Draw(t, "lines"), "\n")
		return s + rapid.SampledFrom([]string{"", "\n"}).Draw(t, "end")
	})
	rapid.Check(t, func(t *rapid.T) {
		old, new := text.Draw(t, "old"), text.Draw(t, "new")
		diff := unified("a", "b", old, new)
		if old == new {
			require.Empty(t, diff)
			return
		}
		require.Equal(t, new, apply(t, old, diff), diff)
	})
}

// apply is a small patch: it trusts the counts of the hunks and checks every line.
func apply(t require.TestingT, old, diff string) string {
	var out strings.Builder
	source, at := lines(old), 0
	patch := lines(diff)[2:]
	for i := 0; i < len(patch); {
		var from, fromCount, to, toCount int
		fromCount, toCount = 1, 1
		header := strings.Fields(patch[i])
		if n, _ := fmt.Sscanf(header[1], "-%d,%d", &from, &fromCount); n == 1 {
			fromCount = 1
		}
		if n, _ := fmt.Sscanf(header[2], "+%d,%d", &to, &toCount); n == 1 {
			toCount = 1
		}
		start := from - 1
		if fromCount == 0 {
			start = from
		}
		for ; at < start; at++ {
			out.WriteString(source[at])
		}
		for i++; fromCount+toCount > 0; i++ {
			op, line := patch[i][0], patch[i][1:]
			if i+1 < len(patch) && patch[i+1][0] == '\\' {
				line = strings.TrimSuffix(line, "\n")
			}
			switch op {
			case ' ':
				require.Equal(t, source[at], line)
				out.WriteString(line)
				at, fromCount, toCount = at+1, fromCount-1, toCount-1
			case '-':
				require.Equal(t, source[at], line)
				at, fromCount = at+1, fromCount-1
			case '+':
				out.WriteString(line)
				toCount--
			}
			if i+1 < len(patch) && patch[i+1][0] == '\\' {
				i++
			}
		}
	}
	for ; at < len(source); at++ {
		out.WriteString(source[at])
	}
	return out.String()
}
