package gen

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/packages"
)

func TestPatternsReachTheFoldersThatTheGoCommandWouldWalk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(dir, link))
	for _, name := range []string{
		"x.go", "a/x.go", "a/b/x.go", "ab/x.go", "a/c/b/x.go", "listed/x.go", "empty/README", "go.go/README", "with space/x.go", "größe/x.go",
		"testdata/x.go", "a/testdata/x.go", "_a/x.go", ".a/x.go", "vendor/x.go", "node_modules/x.go", "nested/go.mod", "nested/x.go", "nested/a/x.go",
		"static/x.go", "a/static/x.go", "gone/x.go", "a/gone/x.go", "a/gone/deep/x.go", "a/agone/x.go",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o777))
		require.NoError(t, os.WriteFile(path, nil, 0o666))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.com/m\n\ngo 1.26\n\nignore (\n\t./static\n\tgone\n)\n"), 0o666))
	sources := []*source{{dir: filepath.Join(dir, "listed"), Package: &packages.Package{Module: &packages.Module{Path: "example.com/m", Dir: dir, Main: true}}}}

	all := []string{".", "a", "a/agone", "a/b", "a/c/b", "a/static", "ab"}
	for _, c := range []struct {
		from    string
		pattern string
		want    []string
	}{
		{".", "./...", all},
		{".", "example.com/m/...", all},
		{".", "example.com/...", all},
		{".", "...", all},
		{".", "all", all},
		{".", "work", all},
		{"a", "../...", all},
		{"a", "example.com/m/...", all},
		{".", dir + "/...", all},
		{".", "./a/...", []string{"a", "a/agone", "a/b", "a/c/b", "a/static"}},
		{".", "example.com/m/a/...", []string{"a", "a/agone", "a/b", "a/c/b", "a/static"}},
		{"a", "./...", []string{"a", "a/agone", "a/b", "a/c/b", "a/static"}},
		{".", "./a...", []string{"a", "a/agone", "a/b", "a/c/b", "a/static", "ab"}},
		{".", "./a/.../b", []string{"a/c/b"}},
		{".", "./.../b", []string{"a/b", "a/c/b"}},
		{".", "example.com/m/.../b", []string{"a/b", "a/c/b"}},
		{".", "./testdata/...", []string{"testdata"}},
		{".", "./a", nil},
		{".", "example.com/m/a", nil},
		{".", "./none/...", nil},
		{".", "example.com/other/...", nil},
		{".", "./empty/...", nil},
	} {
		got := []string{}
		for _, path := range unlisted(Options{Dir: filepath.Join(dir, c.from), Patterns: []string{c.pattern}}, sources) {
			rel, err := filepath.Rel(dir, path)
			require.NoError(t, err)
			got = append(got, filepath.ToSlash(rel))
		}
		require.ElementsMatch(t, c.want, got, "%s in %s", c.pattern, c.from)
	}

	// What the go command has listed is known by either name of the folder.
	for _, path := range unlisted(Options{Dir: link, Patterns: []string{"./..."}}, sources) {
		require.NotEqual(t, "listed", filepath.Base(path))
	}
}
