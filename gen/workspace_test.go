package gen

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files anew from what the generator makes")

// workspace is a temporary module that uses this repository.
type workspace struct {
	t   testing.TB
	dir string
	env []string
}

// newWorkspace makes a module of the given path with every dependency of this repository at hand, so that nothing is
// fetched.
func newWorkspace(t testing.TB, module string) *workspace {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	w := &workspace{t: t, dir: dir}
	// With -trimpath the build cache serves a module wherever it lies.
	w.env = append(os.Environ(), "GOFLAGS=-mod=mod -trimpath", "GOPROXY=off", "GOWORK=off", "PWD="+dir)
	w.writeModule(".", module)
	return w
}

// writeModule makes go.mod and go.sum of a module in a folder of the workspace.
func (w *workspace) writeModule(folder, module string) {
	w.t.Helper()
	root := repository(w.t)
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(w.t, err)
	text := regexp.MustCompile(`(?m)^module .*$`).ReplaceAllString(string(mod), "module "+module)
	text += "\nrequire github.com/smallage/smallage v0.0.0\n\nreplace github.com/smallage/smallage => " + quoted(root) +
		"\n\ntool github.com/smallage/smallage/cmd/smallagegen\n"
	w.write(filepath.Join(folder, "go.mod"), text)
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	require.NoError(w.t, err)
	w.write(filepath.Join(folder, "go.sum"), string(sum))
}

func quoted(path string) string { return "\"" + path + "\"" }

// repository is the root of this repository.
func repository(t testing.TB) string {
	t.Helper()
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	return root
}

func (w *workspace) write(name, content string) {
	w.t.Helper()
	path := filepath.Join(w.dir, filepath.FromSlash(name))
	require.NoError(w.t, os.MkdirAll(filepath.Dir(path), 0o777))
	require.NoError(w.t, os.WriteFile(path, []byte(content), 0o666))
}

// run runs a program in the workspace and requires that it succeeds.
func (w *workspace) run(name string, args ...string) string {
	w.t.Helper()
	out, err := w.try(name, args...)
	require.NoError(w.t, err, "%s %s\n%s", name, strings.Join(args, " "), out)
	return out
}

// try runs a program in the workspace.
func (w *workspace) try(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = w.dir
	cmd.Env = w.env
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// tool finds a checking program on PATH or where go install puts it. It is an error for CI not to have it.
func tool(t testing.TB, name string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	out, err := exec.Command("go", "env", "GOPATH").Output()
	require.NoError(t, err)
	for _, dir := range filepath.SplitList(strings.TrimSpace(string(out))) {
		path := filepath.Join(dir, "bin", name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	require.Empty(t, os.Getenv("CI"), "CI must install %s; make test does", name)
	return ""
}
