package gen

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAccepted makes the code of every accepted scenario, compares it byte for byte, and has all of it built, vetted,
// formatted and checked.
func TestAccepted(t *testing.T) {
	t.Parallel()
	w, list, all := loadAll(t, "accepted")
	var generated []string
	outputs := map[string]*Output{}
	for _, s := range list {
		t.Run(s.name, func(t *testing.T) {
			out := s.generate(t, w, all)
			for _, d := range out.Diagnostics {
				t.Errorf("refused: %s", d.Relative(filepath.Join(w.dir, s.name)))
			}
			require.Empty(t, out.Remove)
			made := map[string]string{}
			for path, data := range out.Files {
				name, err := filepath.Rel(filepath.Join(w.dir, s.name), path)
				require.NoError(t, err)
				made[wanted+"/"+filepath.ToSlash(name)] = string(data)
				generated = append(generated, path)
			}
			require.NotEmpty(t, made)
			outputs[s.name] = out
			s.golden(t, made)
			again := s.generate(t, w, all)
			require.Equal(t, out.Files, again.Files, "the second run differs")
			_, err := out.Write()
			require.NoError(t, err)
		})
	}
	if t.Failed() {
		return
	}
	w.run("go", "vet", "./...")
	if gofumpt := tool(t, "gofumpt"); gofumpt != "" {
		require.Empty(t, w.run(gofumpt, append([]string{"-l"}, generated...)...), "not formatted as gofumpt does")
	}
	if staticcheck := tool(t, "staticcheck"); staticcheck != "" {
		out, err := w.try(staticcheck, "./...")
		var complaints []string
		for line := range strings.Lines(out) {
			if strings.Contains(line, "smallage_gen.go:") {
				complaints = append(complaints, line)
			}
		}
		require.Empty(t, complaints, "%v", err)
	}
	runAccepted(t, w, outputs)
}
