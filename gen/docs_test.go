package gen

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDirectiveDocument compiles every example of docs/directive.md, and requires one for every key.
func TestDirectiveDocument(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join(repository(t), "docs", "directive.md"))
	require.NoError(t, err)
	text := string(data)
	for _, key := range Keys() {
		_, section, found := strings.Cut(text, "\n### "+key+"\n")
		require.True(t, found, "no section for %s", key)
		section, _, _ = strings.Cut(section, "\n### ")
		_, example, found := strings.Cut(section, "```go\n")
		require.True(t, found, "no example for %s", key)
		require.Regexp(t, `(?m)^//smallage:task .*\b`+key+`=`, example)
		require.Contains(t, text, fmt.Sprintf("| [`%s`](#%s) |", key, key))
	}

	w := newWorkspace(t, "example.com/docs")
	examples := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(text, -1)
	require.Greater(t, len(examples), len(Keys()))
	for i, example := range examples {
		// Each example is a package of its own, so that they may share names.
		code := regexp.MustCompile(`(?m)^package (\w+)$`).ReplaceAllString(example[1], fmt.Sprintf("package ${1}%d", i))
		require.Contains(t, code, "//smallage:task")
		w.write(fmt.Sprintf("example%d/example.go", i), code)
	}
	out, err := Generate(context.Background(), Options{Dir: w.dir, Patterns: []string{"./..."}, Env: w.env})
	require.NoError(t, err)
	for _, d := range out.Diagnostics {
		t.Errorf("refused: %s", d)
	}
	require.Len(t, out.Tasks, len(examples))
	_, err = out.Write()
	require.NoError(t, err)
	w.run("go", "vet", "./...")
	if gofumpt := tool(t, "gofumpt"); gofumpt != "" {
		require.Empty(t, w.run(gofumpt, "-l", "."))
	}
}

// TestDiagnosticsDocument requires that docs/diagnostics.md is what the catalogue says, with an example of every kind from
// the scenarios.
func TestDiagnosticsDocument(t *testing.T) {
	t.Parallel()
	path := filepath.Join(repository(t), "docs", "diagnostics.md")
	made := diagnosticsDocument(t)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(made), 0o666))
		return
	}
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(data), made, "run go test ./gen -update")
}

func diagnosticsDocument(t *testing.T) string {
	t.Helper()
	shown := shownByScripts(t)
	for _, s := range scenarios(t, "refused") {
		for _, f := range s.archive.Files {
			if f.Name != wanted {
				continue
			}
			for line := range strings.Lines(string(f.Data)) {
				line = strings.TrimSpace(line)
				name := strings.TrimSuffix(line[strings.LastIndex(line, "[")+1:], "]")
				if old, ok := shown[name]; !ok || len(line) < len(old) {
					shown[name] = line
				}
			}
		}
	}
	var b strings.Builder
	b.WriteString(`# Diagnostics

` + "`smallagegen`" + ` reports everything that is wrong at once, sorted, one line each:

    file:line:column: what is wrong; what to write instead [kind]

It then exits with status 1 and leaves the generated files as they were. Paths are relative to the current folder where
that is shorter. The kinds, with an example of each:

`)
	for _, k := range Catalogue() {
		require.NotEmpty(t, k.Cause, k.Name)
		require.NotEmpty(t, k.Remedy, k.Name)
		require.NotEmpty(t, shown[k.Name], "no scenario shows %s", k.Name)
		fmt.Fprintf(&b, "## %s\n\n    %s\n\n%s\n\n*What to do:* %s\n\n", k.Name, shown[k.Name], k.Cause, k.Remedy)
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// TestCatalogue requires that every message says what to write instead.
func TestCatalogue(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, k := range Catalogue() {
		require.False(t, names[k.Name], "two kinds are called %s", k.Name)
		names[k.Name] = true
		require.Regexp(t, `^[a-z]+(-[a-z]+)*$`, k.Name)
		if k != badWord && k != badTemplate && k != badValue && k != clientValue && k != clientFolder && k != lossyType && k != resultType {
			require.Contains(t, k.Format, ";", "%s does not say what to write instead", k.Name) // the others' arguments do
		}
	}
}
