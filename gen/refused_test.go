package gen

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRefused compares the diagnostics of every refused scenario, and requires that every kind occurs in one.
func TestRefused(t *testing.T) {
	t.Parallel()
	w, list, all := loadAll(t, "refused")
	shown := map[string]bool{}
	for name := range shownByScripts(t) {
		shown[name] = true
	}
	for _, s := range list {
		t.Run(s.name, func(t *testing.T) {
			out := s.generate(t, w, all)
			require.NotEmpty(t, out.Diagnostics, "accepted")
			require.Empty(t, out.Files)
			require.Empty(t, out.Remove)
			var text strings.Builder
			for _, d := range out.Diagnostics {
				line := d.Relative(filepath.Join(w.dir, s.name))
				require.NotContains(t, line, "%!", "a format and its arguments do not fit")
				require.NotContains(t, line, w.dir, "a path that should be relative")
				text.WriteString(line + "\n")
				shown[d.Kind.Name] = true
			}
			s.golden(t, map[string]string{wanted: text.String()})
		})
	}
	for _, k := range Catalogue() {
		require.True(t, shown[k.Name], "no scenario shows %s", k.Name)
	}
}
