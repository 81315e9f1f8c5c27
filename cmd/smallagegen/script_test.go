package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/smallage/smallage/gen"
)

var update = flag.Bool("update", false, "write what scripts compare with cmp anew")

// TestMain lets scripts run this very code as the command smallagegen.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"smallagegen": main,
	})
}

// TestScripts runs the scripts of testdata/command, each in a folder of its own.
func TestScripts(t *testing.T) {
	t.Parallel()
	environment := goEnvironment(t)
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join(repository(t), "testdata", "command"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Vars = append(e.Vars, environment...)
			e.Vars = append(e.Vars, gen.CacheVariable+"="+filepath.Join(e.WorkDir, ".tmp", "rendered"))
			return nil
		},
		UpdateScripts: *update,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"module": module, "crlf": crlf, "bom": bom, "same": same, "listing": listing, "diagnostics": diagnostics, "append": appendTo, "cut": cut,
		},
	})
}

// goEnvironment shares the machine's caches with the scripts, and keeps them off the network.
func goEnvironment(t *testing.T) []string {
	out, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE", "GOPATH").Output()
	require.NoError(t, err)
	parts := strings.Split(strings.TrimSpace(string(out)), "\n")
	require.Len(t, parts, 3)
	return []string{
		"GOCACHE=" + parts[0], "GOMODCACHE=" + parts[1], "GOPATH=" + parts[2],
		"GOPROXY=off", "GOFLAGS=-mod=mod -trimpath", "GOWORK=off", "GOTOOLCHAIN=local",
	}
}

func repository(t testing.TB) string {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	return root
}

// module path [folder] makes a go.mod that uses this repository, with all of its dependencies at hand.
func module(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) == 0 || len(args) > 2 {
		ts.Fatalf("usage: module path [folder]")
	}
	folder := "."
	if len(args) == 2 {
		folder = args[1]
	}
	mod, sum, err := moduleOf(args[0])
	ts.Check(err)
	dir := ts.MkAbs(folder)
	ts.Check(os.MkdirAll(dir, 0o777))
	ts.Check(os.WriteFile(filepath.Join(dir, "go.mod"), []byte(mod), 0o666))
	ts.Check(os.WriteFile(filepath.Join(dir, "go.sum"), []byte(sum), 0o666))
}

// moduleOf returns go.mod and go.sum of a module that uses this repository.
func moduleOf(path string) (mod, sum string, err error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		return "", "", err
	}
	own, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return "", "", err
	}
	mod = regexp.MustCompile(`(?m)^module .*$`).ReplaceAllString(string(own), "module "+path)
	mod += fmt.Sprintf("\nrequire github.com/smallage/smallage v0.0.0\n\nreplace github.com/smallage/smallage => %q\n\n"+
		"tool github.com/smallage/smallage/cmd/smallagegen\n", root)
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	return mod, string(sums), err
}

// crlf file… ends the lines of files as Windows does.
func crlf(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		data := []byte(ts.ReadFile(name))
		ts.Check(os.WriteFile(ts.MkAbs(name), bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n")), 0o666))
	}
}

// cut step file whole command… runs a command for every beginning of a file, step bytes longer each, and requires that it
// makes the file whole again.
func cut(ts *testscript.TestScript, _ bool, args []string) {
	step, err := strconv.Atoi(args[0])
	ts.Check(err)
	whole := ts.ReadFile(args[2])
	for n := 0; n < len(whole); n += step {
		ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(whole[:n]), 0o666))
		ts.Check(ts.Exec(args[3], args[4:]...))
		if ts.ReadFile(args[1]) != whole {
			ts.Fatalf("%s is not whole again after it was cut off at %d", args[1], n)
		}
	}
}

// append a b puts the bytes of b behind those of a.
func appendTo(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: append a b")
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(ts.ReadFile(args[0])+ts.ReadFile(args[1])), 0o666))
}

// bom file… puts a byte order mark in front of files.
func bom(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		data := []byte(ts.ReadFile(name))
		ts.Check(os.WriteFile(ts.MkAbs(name), append([]byte("\ufeff"), data...), 0o666))
	}
}

// same a b requires that two files have the same bytes.
func same(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: same a b")
	}
	if (ts.ReadFile(args[0]) == ts.ReadFile(args[1])) == neg {
		ts.Fatalf("%s and %s: same is %v", args[0], args[1], neg)
	}
}

// listing folder name… requires that a folder holds these names and no others, the hidden ones included.
func listing(ts *testscript.TestScript, _ bool, args []string) {
	entries, err := os.ReadDir(ts.MkAbs(args[0]))
	ts.Check(err)
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	if strings.Join(names, " ") != strings.Join(args[1:], " ") {
		ts.Fatalf("%s holds %q, not %q", args[0], names, args[1:])
	}
}

// diagnostics n requires n lines on the last command's standard error.
func diagnostics(ts *testscript.TestScript, _ bool, args []string) {
	if got := strings.Count(ts.ReadFile("stderr"), "\n"); fmt.Sprint(got) != args[0] {
		ts.Fatalf("%d lines of diagnostics, not %s:\n%s", got, args[0], ts.ReadFile("stderr"))
	}
}
