package templates

import (
	"go/token"
	"go/types"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/dave/jennifer/jen"
)

// locals are the names that generated functions prefer for their own parameters. An import of such a name would be
// hidden by them.
var locals = []string{"ctx", "q", "opts", "r", "id", "timeout", "a", "v", "err"}

// imports knows by which name each package goes in a file. All names are given before anything is written, in the order
// of the paths, so that they depend on the set of packages and on nothing else. Jennifer's own naming depends on the
// order of first use and sees neither parameters nor what the package declares; so code names packages through here, and
// the import block is written here too.
type imports struct {
	local  string
	module string
	names  map[string]string // by path
	real   map[string]string // the packages' own names, by path
	used   map[string]bool
}

// newImports names the packages that the file may mention.
func newImports(f *File) *imports {
	q := &imports{local: f.Path, module: f.Module, names: map[string]string{}, real: map[string]string{}, used: map[string]bool{}}
	add := func(path, name string) {
		if path != q.local {
			q.real[path] = name
		}
	}
	addTypes := func(t types.Type) {
		walkNames(t, func(pkg *types.Package, _ string) {
			if pkg != nil {
				add(pkg.Path(), pkg.Name())
			}
		})
	}
	add("context", "context")
	add("time", "time")
	for _, t := range f.Tasks {
		for _, p := range t.Params {
			if f.Callers && p.Dependency == nil || f.Table != nil {
				addTypes(p.Type)
			}
		}
		if t.Result.Type != nil {
			addTypes(t.Result.Type)
		}
	}
	if f.Table != nil && f.Table.Client != nil {
		add(f.Table.Client.Path, f.Table.Client.Name)
	}
	taken := newScope(locals...)
	for name := range f.Taken {
		taken.add(name)
	}
	taken.add(DispatchName)
	for _, t := range f.Tasks {
		taken.add(t.Names().All()...)
	}
	for _, name := range types.Universe.Names() {
		taken.add(name) // a package called string would hide the type
	}
	q.names[RuntimePath] = taken.take(RuntimeName) // the name that readers expect goes to the runtime
	delete(q.real, RuntimePath)
	for _, path := range slices.Sorted(maps.Keys(q.real)) {
		q.names[path] = taken.take(importable(q.real[path]))
	}
	return q
}

// importable is the package's own name, but for the few names that no import may have.
func importable(name string) string {
	if name == "init" || name == "_" || name == "main" {
		return name + "pkg" // init must be a function, and main reads as something else
	}
	return name
}

// alias returns the name of a package without marking it as used.
func (q *imports) alias(path string) string { return q.names[path] }

// use returns the name of a package and makes sure that it is imported.
func (q *imports) use(path string) string {
	q.used[path] = true
	return q.names[path]
}

// qual writes name of a package.
func (q *imports) qual(path, name string) *jen.Statement {
	return jen.Id(q.use(path) + "." + name)
}

// runtime writes a name of the runtime.
func (q *imports) runtime(name string) *jen.Statement { return q.qual(RuntimePath, name) }

// text writes a type as Go source.
func (q *imports) text(t types.Type) string {
	return types.TypeString(t, func(pkg *types.Package) string {
		if pkg.Path() == q.local {
			return ""
		}
		return q.use(pkg.Path())
	})
}

// typ writes a type.
func (q *imports) typ(t types.Type) *jen.Statement { return jen.Id(q.text(t)) }

// block writes the imports that were used: the standard library first, as gofumpt wants it.
func (q *imports) block() *jen.Statement {
	var standard, others []jen.Code
	for _, p := range slices.Sorted(maps.Keys(q.used)) {
		line := jen.Lit(p)
		if name := q.names[p]; name != path.Base(p) || q.real[p] != name {
			line = jen.Id(name).Lit(p)
		}
		if q.isStandard(p) {
			standard = append(standard, line)
		} else {
			others = append(others, line)
		}
	}
	lines := standard
	if len(standard) > 0 && len(others) > 0 {
		lines = append(lines, jen.Line())
	}
	lines = append(lines, others...)
	if len(lines) == 1 {
		return jen.Id(token.IMPORT.String()).Add(lines[0])
	}
	return jen.Id(token.IMPORT.String()).Custom(jen.Options{Open: "(", Close: ")", Multi: true}, lines...)
}

// isStandard holds where the first element has no dot, unless it is the module's own.
func (q *imports) isStandard(path string) bool {
	if path == q.module || strings.HasPrefix(path, q.module+"/") {
		return false
	}
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".") && first != "test" && first != "example"
}
