package gen

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/packages"
	"golang.org/x/tools/txtar"
)

// A scenario is one txtar file in testdata: Go sources in, below the module example.com/<scenario>; out come either
// generated files, under want/, or the diagnostics, in the file want.
type scenario struct {
	name    string
	path    string
	archive *txtar.Archive
}

const wanted = "want"

// scenarios reads all of one folder of testdata.
func scenarios(t testing.TB, folder string) []*scenario {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(repository(t), "testdata", folder, "*.txtar"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	var list []*scenario
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		require.NoError(t, err)
		list = append(list, &scenario{strings.TrimSuffix(filepath.Base(path), ".txtar"), path, archive})
	}
	return list
}

// isSource holds for the files that go in.
func isSource(name string) bool { return name != wanted && !strings.HasPrefix(name, wanted+"/") }

// place puts a scenario's sources into a folder of its own.
func (s *scenario) place(w *workspace) {
	w.t.Helper()
	require.NotEmpty(w.t, strings.TrimSpace(string(s.archive.Comment)), "%s: say what it shows", s.path)
	for _, f := range s.archive.Files {
		if isSource(f.Name) {
			w.write(s.name+"/"+f.Name, string(f.Data))
		}
	}
}

// generate makes the output of one scenario from the packages that were loaded for all.
func (s *scenario) generate(t testing.TB, w *workspace, all []*packages.Package) *Output {
	t.Helper()
	var own []*packages.Package
	dir := filepath.Join(w.dir, s.name)
	for _, p := range all {
		if strings.HasPrefix(p.PkgPath+"/", "example.com/"+s.name+"/") {
			own = append(own, p)
		}
	}
	require.NotEmpty(t, own, "no package was loaded")
	out, err := fromPackages(Options{Dir: dir, Patterns: []string{"./..."}}, own)
	require.NoError(t, err)
	return out
}

// golden compares what came out with the scenario's file, or writes it anew.
func (s *scenario) golden(t *testing.T, made map[string]string) {
	t.Helper()
	if *update {
		kept := s.archive.Files[:0]
		for _, f := range s.archive.Files {
			if isSource(f.Name) {
				kept = append(kept, f)
			}
		}
		for _, name := range sortedKeys(made) {
			kept = append(kept, txtar.File{Name: name, Data: []byte(made[name])})
		}
		s.archive.Files = kept
		require.NoError(t, os.WriteFile(s.path, txtar.Format(s.archive), 0o666))
		return
	}
	expected := map[string]string{}
	for _, f := range s.archive.Files {
		if !isSource(f.Name) {
			expected[f.Name] = string(f.Data)
		}
	}
	require.ElementsMatch(t, sortedKeys(expected), sortedKeys(made))
	for name, text := range expected {
		require.Equal(t, text, made[name], name)
	}
}

// loadAll loads every scenario of a folder at once: a load for each would take minutes.
func loadAll(t *testing.T, folder string) (*workspace, []*scenario, []*packages.Package) {
	t.Helper()
	w := newWorkspace(t, "example.com")
	list := scenarios(t, folder)
	for _, s := range list {
		s.place(w)
	}
	all, err := load(context.Background(), Options{Dir: w.dir, Patterns: []string{"./..."}, Env: w.env})
	require.NoError(t, err)
	return w, list, all
}

// shownByScripts returns a line of every kind of diagnostic that a script of the command expects: kinds that need more
// than one module, say, cannot be shown by a scenario.
func shownByScripts(t testing.TB) map[string]string {
	t.Helper()
	shown := map[string]string{}
	line := regexp.MustCompile(`(?m)^\S+:\d+:\d+: .* \[([a-z-]+)\]$`)
	for _, s := range scenarios(t, "command") {
		for _, f := range s.archive.Files {
			for _, m := range line.FindAllStringSubmatch(string(f.Data), -1) {
				if old, ok := shown[m[1]]; !ok || len(m[0]) < len(old) {
					shown[m[1]] = m[0]
				}
			}
		}
	}
	return shown
}
