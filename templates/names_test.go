package templates

import (
	"go/token"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestUnexportedLowersTheFirstWord(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"Charge": "charge", "charge": "charge", "HTTPFetch": "httpFetch", "ABC": "abc", "X": "x", "Élan": "élan",
		"送信": "送信", "ID2": "id2", "_X": "_X", "ServiceCharge": "serviceCharge", "A1B": "a1B",
	} {
		require.Equal(t, want, Unexported(name), name)
	}
}

func TestExportedMakesAField(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"invoiceID": "InvoiceID", "ID": "ID", "_x": "X_x", "送信": "X送信", "été": "Été", "ß": "Xß", "ǆ": "Ǆ",
	} {
		require.Equal(t, want, Exported(name), name)
		require.True(t, token.IsExported(Exported(name)), name)
	}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[\pL_][\pL_0-9]{0,5}`).Draw(t, "name")
		require.True(t, token.IsExported(Exported(name)) && token.IsIdentifier(Exported(name)), "%q", name)
	})
}

func TestScopeNeverGivesANameTwice(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		wanted := rapid.SliceOf(rapid.SampledFrom([]string{"ctx", "ctx2", "q", "func", "type", "a", "a2", "a22"})).Draw(t, "wanted")
		s, given := newScope("q"), map[string]bool{"q": true}
		for _, name := range wanted {
			got := s.take(name)
			require.False(t, given[got], "%s is given twice", got)
			require.True(t, token.IsIdentifier(got))
			given[got] = true
		}
	})
}

func TestSpanLeavesOutZeroUnits(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		time.Hour: "1h", 90 * time.Minute: "1h30m", 5 * time.Minute: "5m", 30 * time.Second: "30s", 10 * time.Minute: "10m",
		time.Hour + time.Second: "1h0m1s", 1500 * time.Millisecond: "1.5s", 20 * time.Hour: "20h", 100 * time.Second: "1m40s",
	} {
		require.Equal(t, want, Span(d))
		parsed, err := time.ParseDuration(Span(d))
		require.NoError(t, err)
		require.Equal(t, d, parsed)
	}
}

func TestCommentTextStaysAComment(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.SampledFrom([]rune("a /*\n\t\r:go build!é"))).Draw(t, "text")
		for _, line := range splitLines(commentText(text)) {
			require.Regexp(t, `^//($| |\t)`, line)
		}
	})
}

func splitLines(s string) []string {
	var lines []string
	for len(s) > 0 {
		i := 0
		for i < len(s) && s[i] != '\n' {
			i++
		}
		lines = append(lines, s[:i])
		s = s[min(i+1, len(s)):]
	}
	return lines
}
