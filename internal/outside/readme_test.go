// Package outside_test looks at the project as an application does that lives elsewhere: it follows the README in a module
// of its own, and looks at what its binaries link.
package outside_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/smallage/smallage/internal/redistest"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m).Run()) }

func repository(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	return root
}

// block is one fenced block of a page.
type block struct {
	language string
	file     string // what the text before it names as the file to write; Go only
	text     string
	section  string
}

var (
	fence     = regexp.MustCompile("^```([a-z]*)$")
	namesFile = regexp.MustCompile("`([a-z_/]+\\.go)`:$")
)

func readBlocks(t *testing.T, page string) []block {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository(t), page))
	require.NoError(t, err)
	var blocks []block
	var open *block
	var section, before string
	for _, line := range strings.Split(string(text), "\n") {
		mark := fence.FindStringSubmatch(line)
		switch {
		case open != nil && mark != nil:
			blocks = append(blocks, *open)
			open = nil
		case open != nil:
			open.text += line + "\n"
		case mark != nil:
			open = &block{language: mark[1], section: section}
			if named := namesFile.FindStringSubmatch(before); named != nil {
				open.file = named[1]
			}
		default:
			if strings.HasPrefix(line, "## ") {
				section = line[3:]
			}
			if line != "" {
				before = line
			}
		}
	}
	require.Nil(t, open, "a fence is not closed")
	return blocks
}

// Whoever pastes the README's steps gets an application that works. The steps are followed to the letter, in a folder
// beside a copy that stands for the reader's clone; only the address of the server is the test's own.
func TestReadmeCanBeFollowed(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	var script strings.Builder
	steps := 0
	for _, b := range readBlocks(t, "README.md") {
		if b.section != "In your own application" {
			require.NotEqual(t, "go", b.language, "a snippet that nothing compiles:\n%s", b.text)
			continue
		}
		steps++
		switch b.language {
		case "go":
			require.NotEmpty(t, b.file, "no file is named before\n%s", b.text)
			fmt.Fprintf(&script, "mkdir -p %q\ncat >%q <<'END OF FILE'\n%sEND OF FILE\n", filepath.Dir(b.file), b.file, b.text)
		case "sh":
			script.WriteString(strings.ReplaceAll(b.text, "127.0.0.1:6379", server.Addr()))
		default:
			require.Fail(t, "a block of an unknown kind", b.text)
		}
	}
	require.Greater(t, steps, 10)
	script.WriteString("go vet ./...\n")

	workplace := t.TempDir()
	clone := filepath.Join(workplace, "smallage")
	copyModule(t, clone)
	out := runScript(t, clone, script.String())
	require.Equal(t, 2, strings.Count(out, "charged: receipt for "), out) // embedded, and on the server
	require.Equal(t, 2, strings.Count(out, "charged twice: no, job "), out)
	require.Equal(t, 2, strings.Count(out, "reindexing "), out)
	require.Equal(t, 1, strings.Count(out, "for development only"), out)
	require.Contains(t, out, "ok  \texample.com/celery/tasks", out)

	// The jobs of the second run went through the server, and none is left there.
	rdb := server.Client()
	require.Len(t, redistest.Keys(t, rdb, "smallage:{d:charge:*}"), 1)
	for _, queue := range []string{"search", "billing"} {
		require.Zero(t, rdb.XLen(t.Context(), "smallage:{q:"+queue+"}:stream").Val(), queue)
	}

	// Generating again changes nothing, and removing the output is repaired.
	generated := filepath.Join(workplace, "celery", "tasks", "smallage_gen.go")
	first, err := os.ReadFile(generated)
	require.NoError(t, err)
	require.NoError(t, os.Remove(generated))
	runScript(t, filepath.Join(workplace, "celery"), "go generate ./...\ngo build ./...\ngo tool smallagegen -check ./...\n")
	second, err := os.ReadFile(generated)
	require.NoError(t, err)
	require.Equal(t, string(first), string(second))
}

// copyModule copies the repository without what is hidden, such as its history.
func copyModule(t *testing.T, to string) {
	t.Helper()
	from := repository(t)
	require.NoError(t, filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		switch {
		case name != "." && strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, name), 0o755)
		case !d.Type().IsRegular():
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), text, 0o644)
	}))
}

// runScript runs the lines in bash, each of which must succeed, and returns all output.
func runScript(t *testing.T, dir, script string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=") // as in a reader's shell
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Run(), "%s", &out)
	return out.String()
}

func TestReadmeLinksAndFoldersExist(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(repository(t), "README.md"))
	require.NoError(t, err)
	named := regexp.MustCompile(`\]\(([^)#:]+)\)`).FindAllStringSubmatch(string(text), -1)
	named = append(named, regexp.MustCompile("(?m)^\\| `([a-z/]+)`").FindAllStringSubmatch(string(text), -1)...)
	require.Greater(t, len(named), 7)
	for _, name := range named {
		_, err := os.Stat(filepath.Join(repository(t), name[1]))
		require.NoError(t, err)
	}
}
