package outside_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/smallage/smallage/"

// listDeps returns every package outside the standard library that the package's binary links, itself included.
func listDeps(t *testing.T, pkg string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", pkg)
	cmd.Dir = repository(t)
	out, err := cmd.Output()
	require.NoError(t, err)
	deps := strings.Fields(string(out))
	require.Contains(t, deps, pkg)
	return deps
}

func requireNone(t *testing.T, deps []string, unwanted ...string) {
	t.Helper()
	for _, dep := range deps {
		for _, prefix := range unwanted {
			require.False(t, dep == prefix || strings.HasPrefix(dep, prefix+"/"), "links %s", dep)
		}
	}
}

const (
	jennifer  = "github.com/dave/jennifer"
	tools     = "golang.org/x/tools"
	testify   = "github.com/stretchr/testify"
	miniredis = "github.com/alicebob/miniredis"
	gopherLua = "github.com/yuin/gopher-lua"
)

func TestApplicationsLinkNeitherGeneratorNorTestTools(t *testing.T) {
	t.Parallel()
	for _, example := range []string{"quickstart", "worker"} {
		deps := listDeps(t, module+"examples/"+example)
		require.Contains(t, deps, module+"runtime")
		requireNone(t, deps, jennifer, tools, testify, module+"gen", module+"templates", module+"internal")
		if !slices.Contains(deps, module+"runtime/embedded") {
			requireNone(t, deps, miniredis, gopherLua)
		}
	}
	require.NotContains(t, listDeps(t, module+"examples/worker"), module+"runtime/embedded", "the plain case must be among the examples")
}

func TestRuntimeStaysSlim(t *testing.T) {
	t.Parallel()
	allowed := []string{module + "runtime", "github.com/redis/go-redis/v9", "github.com/google/uuid"}
	// What those two need themselves.
	ofTheirs := listDeps(t, "github.com/redis/go-redis/v9")
	for _, dep := range listDeps(t, module+"runtime") {
		known := slices.ContainsFunc(allowed, func(a string) bool { return dep == a || strings.HasPrefix(dep, a+"/internal/") })
		require.True(t, known || slices.Contains(ofTheirs, dep) || dep == "github.com/google/uuid", "runtime links %s", dep)
	}

	cmd := exec.CommandContext(t.Context(), "go", "list", "-f", `{{join .Imports "\n"}}`, module+"runtime")
	cmd.Dir = repository(t)
	out, err := cmd.Output()
	require.NoError(t, err)
	for _, path := range strings.Fields(string(out)) {
		first, _, _ := strings.Cut(path, "/")
		if strings.Contains(first, ".") {
			require.True(t, slices.Contains(allowed, path) || strings.HasPrefix(path, "github.com/redis/go-redis/v9/"), "runtime imports %s", path)
		}
	}
}

func TestGeneratorAndRuntimeAreApart(t *testing.T) {
	t.Parallel()
	for _, pkg := range []string{"gen", "templates", "cmd/smallagegen"} {
		requireNone(t, listDeps(t, module+pkg), module+"runtime", module+"examples", "github.com/redis/go-redis", miniredis, testify)
	}
	requireNone(t, listDeps(t, module+"templates"), module+"gen", tools)
	requireNone(t, listDeps(t, module+"runtime/embedded"), module+"gen", module+"templates", jennifer, tools, testify)
}

// Only runtime/embedded imports the stand-in, also among the tests.
func TestOnlyEmbeddedImportsTheStandIn(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-f",
		`{{$p := .ImportPath}}{{range .Imports}}{{$p}} {{.}}{{"\n"}}{{end}}{{range .TestImports}}{{$p}} {{.}}{{"\n"}}{{end}}`+
			`{{range .XTestImports}}{{$p}} {{.}}{{"\n"}}{{end}}`, "./...")
	cmd.Dir = repository(t)
	out, err := cmd.Output()
	require.NoError(t, err)
	importers := map[string]bool{}
	for _, line := range strings.Split(string(out), "\n") {
		if importer, path, _ := strings.Cut(line, " "); strings.HasPrefix(path, miniredis) {
			importers[importer] = true
		}
	}
	require.Equal(t, map[string]bool{module + "runtime/embedded": true}, importers)
}
