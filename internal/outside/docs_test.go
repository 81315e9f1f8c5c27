package outside_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a snippet may use without saying where it comes from.
var snippetImports = map[string]string{
	"context": "context", "errors": "errors", "fmt": "fmt", "log": "log", "slog": "log/slog", "time": "time", "testing": "testing",
	"uuid": "github.com/google/uuid", "redis": "github.com/redis/go-redis/v9", "require": "github.com/stretchr/testify/require",
	"smallage": "github.com/smallage/smallage/runtime", "embedded": "github.com/smallage/smallage/runtime/embedded",
	"tasks": "example.com/snippets/tasks",
}

// The tasks that snippets speak of, as an application has them.
const snippetTasks = `package tasks

import (
	"context"

	"github.com/google/uuid"
)

//smallage:task queue=search attempts=5 timeout=30s
func Reindex(ctx context.Context, docID uuid.UUID) error { return nil }

type PaymentGateway interface {
	Collect(ctx context.Context, invoiceID uuid.UUID) ([]byte, error)
}

//smallage:task queue=billing dedup="charge:{invoiceID}" inject=gateway
func Charge(ctx context.Context, gateway PaymentGateway, invoiceID uuid.UUID) ([]byte, error) {
	return gateway.Collect(ctx, invoiceID)
}
`

// Every Go snippet of the pages compiles, in a module of its own, against generated code. A snippet is a whole file,
// some declarations, or some statements of a function that has what every application has.
func TestEverySnippetOfThePagesCompiles(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob(filepath.Join(repository(t), "docs", "*.md"))
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	dir := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	write("tasks/tasks.go", snippetTasks)
	n := 0
	for _, page := range pages {
		name := strings.TrimSuffix(filepath.Base(page), ".md")
		if name == "directive" || name == "diagnostics" {
			continue // whole packages, right and wrong ones, which the generator's own tests compile
		}
		for i, b := range readBlocks(t, filepath.Join("docs", name+".md")) {
			if b.language == "go" {
				n++
				write(fmt.Sprintf("%s%d/snippet.go", name, i), snippetFile(t, b.text))
			}
		}
	}
	require.Positive(t, n)
	out := runScript(t, dir, fmt.Sprintf(`
go mod init example.com/snippets
go mod edit -replace github.com/smallage/smallage=%s -require github.com/smallage/smallage@v0.0.0
go mod edit -tool github.com/smallage/smallage/cmd/smallagegen
go mod tidy
go tool smallagegen ./...
go build ./...
`, repository(t)))
	require.NotContains(t, out, "snippet.go")
}

func snippetFile(t *testing.T, text string) string {
	t.Helper()
	files := token.NewFileSet()
	if strings.Contains("\n"+text, "\npackage ") {
		_, err := parser.ParseFile(files, "snippet.go", text, 0)
		require.NoError(t, err, text)
		return text
	}
	candidates := []string{
		"package snippet\n\n" + text,
		"package snippet\n\nfunc _(ctx context.Context, client *smallage.Client, rdb redis.UniversalClient, gateway tasks.PaymentGateway,\n" +
			"\tdocID, invoiceID uuid.UUID, id smallage.JobID, ids []smallage.JobID) error {\n" + text + "\nreturn nil\n}\n",
	}
	for _, candidate := range candidates {
		file, err := parser.ParseFile(files, "snippet.go", candidate, 0)
		if err != nil {
			continue
		}
		return withImports(file, candidate)
	}
	require.Fail(t, "a snippet that is no Go", text)
	return ""
}

func withImports(file *ast.File, text string) string {
	var used []string
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && snippetImports[x.Name] != "" && !slices.Contains(used, x.Name) {
				used = append(used, x.Name)
			}
		}
		return true
	})
	slices.Sort(used)
	var imports strings.Builder
	for _, name := range used {
		fmt.Fprintf(&imports, "import %s %q\n", name, snippetImports[name])
	}
	return strings.Replace(text, "package snippet\n", "package snippet\n\n"+imports.String(), 1)
}
