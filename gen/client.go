package gen

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/mod/module"
	"golang.org/x/tools/go/packages"

	"github.com/smallage/smallage/templates"
)

// client is the package that callers use, where a directive asks for one.
type client struct {
	value  string
	at     token.Position
	dir    string
	path   string
	name   string
	usable bool                      // the folder can hold it
	names  map[string]token.Position // declared by hand in the folder
	mixed  bool                      // the folder holds files written by hand, too
}

// check finds the client's folder and refuses what cannot go there.
func (c *client) check(s *source, r *reporter) {
	if problem := c.locate(s); problem != "" {
		r.report(clientValue, c.at, show(c.value), problem)
		return
	}
	if problem := c.read(); problem != "" {
		r.report(clientFolder, c.at, c.path, problem)
		return
	}
	c.usable = true
	if len(s.tasks) == 0 {
		r.report(clientWithoutTasks, c.at)
		return
	}
	importers := importersOf(s, c.path)
	for _, t := range s.tasks {
		if t.uncallable {
			continue
		}
		if !ast.IsExported(t.Prefix) {
			r.report(clientUnexported, t.at(), t.label(), exportedPrefix(t.Prefix))
		}
		for _, p := range t.params {
			if p.Dependency == nil {
				c.checkType("parameter "+p.Name, p.Type, p.at, t, importers, r)
			}
		}
		if t.Result.Type != nil {
			c.checkType("the result", t.Result.Type, t.at(), t, importers, r)
		}
	}
}

// locate finds folder and import path of the client, and returns what is wrong with the value.
func (c *client) locate(s *source) string {
	folder := path.Clean(c.value)
	c.name = path.Base(folder)
	switch {
	case path.IsAbs(c.value) || filepath.IsAbs(c.value) || strings.Contains(c.value, `\`):
		return "is not a folder relative to the package; write a name such as client=billingq"
	case folder == ".":
		return "is the package's own folder; write a folder below it, such as client=billingq"
	case !token.IsIdentifier(c.name), strings.Trim(c.name, "_") == "", c.name == "main", c.name == "testdata",
		c.name == "vendor", strings.HasPrefix(c.name, "_"), strings.HasSuffix(c.name, "_test"):
		return "does not end in a name that a package can have; write a folder such as client=billingq"
	case s.Module == nil || s.Module.Dir == "":
		return "needs a module; run go mod init first"
	}
	c.dir = filepath.Join(s.dir, filepath.FromSlash(folder))
	c.path = path.Join(s.PkgPath, folder)
	if problem := checkImportable(c.path, folder); problem != "" {
		return problem
	}
	inside, err := filepath.Rel(s.Module.Dir, c.dir)
	if err != nil || inside == "." || strings.HasPrefix(inside, "..") || !strings.HasPrefix(c.path, s.Module.Path+"/") {
		return "leads out of the module; write a folder inside of it"
	}
	for dir := c.dir; dir != s.Module.Dir && len(dir) > len(s.Module.Dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return "leads into another module; write a folder of the package's own module"
		}
	}
	return ""
}

// checkImportable returns what keeps the go command from importing a package by its path.
func checkImportable(importPath, folder string) string {
	for element := range strings.SplitSeq(folder, "/") {
		switch {
		case element == "..":
		case element == "vendor":
			return "lies in a folder vendor, which the go command keeps for dependencies; write a folder such as client=billingq"
		case element == "testdata", strings.HasPrefix(element, "_"), strings.HasPrefix(element, "."):
			return "lies in a folder " + element + ", which the go command leaves out of ./...; write a folder such as client=billingq"
		}
	}
	err := module.CheckImportPath(importPath)
	if err == nil {
		return ""
	}
	if invalid, ok := errors.AsType[*module.InvalidPathError](err); ok {
		err = invalid.Err
	}
	return fmt.Sprintf("makes the import path %s, which the go command refuses (%v); write a folder such as client=billingq", importPath, err)
}

// read looks at what the folder holds beside the generated file.
func (c *client) read() string {
	c.names = map[string]token.Position{}
	entries, err := os.ReadDir(c.dir)
	if os.IsNotExist(err) {
		return ""
	}
	if err != nil {
		return fmt.Sprintf("cannot be read (%v); choose another", err)
	}
	set := token.NewFileSet()
	for _, entry := range entries {
		name := entry.Name()
		if entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasPrefix(name, "_") || strings.HasPrefix(name, ".") {
			continue
		}
		file := filepath.Join(c.dir, name)
		data, err := readRegular(file)
		if err != nil {
			return fmt.Sprintf("cannot be read (%v); choose another", err)
		}
		if isOurs(data) || name == templates.FileName && begun(data) {
			continue
		}
		syntax, _ := parser.ParseFile(set, file, data, parser.ParseComments|parser.SkipObjectResolution)
		if syntax == nil {
			continue
		}
		test := strings.HasSuffix(name, "_test.go")
		if syntax.Name.Name != c.name && !(test && syntax.Name.Name == c.name+"_test") {
			return fmt.Sprintf("holds the package %s; choose another folder, or name that package %s", syntax.Name.Name, c.name)
		}
		c.mixed = c.mixed || !test
		for _, group := range syntax.Comments {
			for _, comment := range group.List {
				if _, ok := directive(comment.Text, taskDirective); ok {
					return "holds tasks of its own, whose generated file would be the same; choose another folder"
				}
			}
		}
		for name, obj := range topLevel(syntax) {
			c.names[name] = set.Position(obj)
		}
	}
	return ""
}

// checkType refuses types that the client package cannot import.
func (c *client) checkType(what string, typ types.Type, at token.Position, t *task, importers map[string]bool, r *reporter) {
	templates.WalkNames(typ, func(pkg *types.Package, name string) {
		switch {
		case pkg == nil || pkg.Path() == c.path:
		case pkg == t.source.Types:
			r.report(clientType, at, what, t.label(), name, "is declared in the package of the handlers", c.path)
		case importers[pkg.Path()]:
			r.report(clientType, at, what, t.label(), pkg.Name()+"."+name, "is of a package that imports the client package", c.path)
		case !mayImport(c.path, pkg.Path()):
			r.report(clientInternal, at, what, t.label(), pkg.Name()+"."+name, c.path)
		}
	})
}

// mayImport is Go's rule for internal packages.
func mayImport(from, imported string) bool {
	at := strings.LastIndex("/"+imported+"/", "/internal/")
	if at < 0 {
		return true
	}
	parent := strings.TrimSuffix(imported[:max(at-1, 0)], "/")
	if at == 0 {
		return false // the standard library's
	}
	return from == parent || strings.HasPrefix(from, parent+"/")
}

// importersOf returns the packages below s that import the client's package, through whatever others.
func importersOf(s *source, client string) map[string]bool {
	importers := map[string]bool{}
	seen := map[*packages.Package]bool{}
	var visit func(p *packages.Package) bool
	visit = func(p *packages.Package) bool {
		if p.PkgPath == client {
			return true
		}
		if seen[p] {
			return importers[p.PkgPath]
		}
		seen[p] = true
		for _, imported := range p.Imports {
			if visit(imported) {
				importers[p.PkgPath] = true
			}
		}
		return importers[p.PkgPath]
	}
	for _, imported := range s.Imports {
		visit(imported)
	}
	return importers
}

// checkIdentifiers refuses generated names that are taken in the client's folder, or by another task.
func (c *client) checkIdentifiers(s *source, r *reporter) {
	owner := map[string]*task{}
	for _, t := range s.tasks {
		for _, name := range t.Names().All() {
			if other, twice := owner[name]; twice {
				r.report(namesCollide, t.at(), t.label(), name, other.label(), other.at())
				break
			}
			owner[name] = t
			if at, taken := c.names[name]; taken {
				r.report(nameTaken, t.at(), t.label(), name, at)
			}
		}
	}
}

// checkClientsAcross refuses one folder for the clients of two packages.
func checkClientsAcross(sources []*source, r *reporter) {
	owner := map[string]*source{}
	for _, s := range sources {
		if s.client == nil || s.client.dir == "" {
			continue
		}
		if other, taken := owner[s.client.dir]; taken {
			r.report(clientTwice, s.client.at, s.client.path, other.PkgPath, other.client.at)
			continue
		}
		owner[s.client.dir] = s
	}
}

// clientComment begins the package comment of a client. It says whose it is, so that a later run can tell whether it is
// still needed.
const clientComment = "enqueues the tasks of "

// plan describes the client's file. Where the folder holds files written by hand, the generated one stays out of the
// load, as everywhere: the handlers need those files' types even where the generated file is broken.
func (c *client) plan(s *source, tasks []*templates.Task) *templates.File {
	f := &templates.File{
		Package: c.name, Path: c.path, Module: s.module(), Dir: c.dir,
		Comment: fmt.Sprintf("Package %s %s%s.", c.name, clientComment, s.PkgPath),
		Tasks:   tasks, Callers: true, Taken: taken(c.names),
	}
	if c.mixed {
		f.Constraint = "!" + Tag
	}
	return f
}

// clientOf returns the import path of the package that a client file belongs to, and "" for another file.
func clientOf(data []byte) string {
	for line := range strings.Lines(string(data[:min(len(data), 4096)])) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "package ") {
			break
		}
		if _, after, ok := strings.Cut(line, " "+clientComment); ok && strings.HasPrefix(line, "// Package ") {
			return strings.TrimSuffix(after, ".")
		}
	}
	return ""
}
