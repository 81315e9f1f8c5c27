package gen

import (
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"

	"github.com/smallage/smallage/templates"
)

// elsewhere is what a generated file tells of the run that wrote it: under another system, perhaps, where the build
// leaves in what it leaves out here.
type elsewhere struct {
	constraint string
	tasks      map[string]bool // by label
}

// readElsewhere returns nil where the folder has no generated file.
func readElsewhere(dir string) *elsewhere {
	data, err := readRegular(filepath.Join(dir, templates.FileName))
	if err != nil || !isOurs(data) {
		return nil
	}
	syntax, err := parser.ParseFile(token.NewFileSet(), "", data, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil
	}
	e := &elsewhere{tasks: map[string]bool{}}
	for _, group := range syntax.Comments {
		for _, comment := range group.List {
			if group.Pos() < syntax.Package && constraint.IsGoBuild(comment.Text) {
				e.constraint = strings.TrimSpace(strings.TrimPrefix(comment.Text, "//go:build"))
			}
		}
	}
	for _, decl := range syntax.Decls {
		if d, ok := decl.(*ast.GenDecl); ok && d.Tok == token.VAR {
			for _, spec := range d.Specs {
				if v := spec.(*ast.ValueSpec); len(v.Values) == 1 && v.Names[0].Name == "_" {
					e.tasks[guarded(v.Values[0])] = true
				}
			}
		}
	}
	return e
}

// guarded is the label of the function that a guard names: Charge, Service.Charge or (*Service).Charge.
func guarded(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.ParenExpr:
		return guarded(e.X)
	case *ast.StarExpr:
		return guarded(e.X)
	case *ast.SelectorExpr:
		return guarded(e.X) + "." + e.Sel.Name
	}
	return ""
}

// covers holds for a task of a left-out file that the generated file was written for.
func (e *elsewhere) covers(f *file, label string) bool {
	return e != nil && e.constraint == generatedConstraint(f.constraint) && e.tasks[label]
}
