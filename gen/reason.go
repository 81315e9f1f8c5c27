package gen

import (
	"go/ast"
	"go/token"
	"go/types"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"
)

// whyInvalid returns the type checker's reason for an invalid type that is written as expr, or declared somewhere inside
// of it.
func (s *source) whyInvalid(expr ast.Expr, way string, declared types.Object) string {
	if reason := s.reasonIn(expr); reason != "" {
		return reason
	}
	if declared != nil {
		if reason := s.nameError(declared); reason != "" {
			return way + reason
		}
		if inner := s.declaration(declared.Pos()); inner != nil {
			if reason := s.reasonIn(inner); reason != "" {
				return way + reason
			}
		} else if reason := reasonElsewhere(s.Package, declared); reason != "" {
			return way + reason
		}
	}
	return way + "invalid type"
}

// reasonIn returns the first type error in an expression. Of what a missing package would declare there is none: that
// error stands at the import.
func (s *source) reasonIn(expr ast.Expr) string {
	if reason := s.typeError(expr.Pos(), expr.End()); reason != "" {
		return oneLine(reason)
	}
	reason := ""
	ast.Inspect(expr, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && reason == "" {
			switch used := s.TypesInfo.Uses[id].(type) {
			case *types.PkgName:
				reason = s.importError(used.Imported().Path())
			case *types.TypeName:
				reason = s.nameError(used)
			}
		}
		return reason == ""
	})
	return reason
}

// brokenType holds for a type of the package whose declaration has an error that leaves it a type all the same: a field
// that is declared twice, say.
func (s *source) brokenType(name *types.TypeName) bool {
	if len(s.TypeErrors) == 0 || name.Pkg() != s.Types {
		return false
	}
	expr := s.declaration(name.Pos())
	return expr != nil && s.typeError(expr.Pos(), expr.End()) != ""
}

// nameError returns the type error at the name of a declaration, where types that contain themselves have theirs.
func (s *source) nameError(declared types.Object) string {
	if declared.Pkg() != s.Types || !declared.Pos().IsValid() {
		return ""
	}
	return oneLine(s.typeError(declared.Pos(), declared.Pos()))
}

// importError says why a package could not be imported, or returns "". The go command's reason says more than the type
// checker's.
func (s *source) importError(path string) string {
	for _, syntax := range s.Syntax {
		for _, spec := range syntax.Imports {
			if written, err := strconv.Unquote(spec.Path.Value); err != nil || written != path {
				continue
			}
			reason := s.typeError(spec.Pos(), spec.End())
			if reason == "" {
				continue
			}
			if imported := s.Imports[path]; imported != nil {
				for _, e := range imported.Errors {
					if e.Kind == packages.ListError && e.Msg != "" {
						return "could not import " + path + ": " + oneLine(e.Msg)
					}
				}
			}
			return oneLine(reason)
		}
	}
	return ""
}

// declaration returns what the type or field that is declared at a position is declared as, where that is in the package.
func (s *source) declaration(pos token.Pos) (found ast.Expr) {
	for _, syntax := range s.Syntax {
		if pos < syntax.FileStart || syntax.FileEnd <= pos {
			continue
		}
		ast.Inspect(syntax, func(n ast.Node) bool {
			if n == nil || found != nil || pos < n.Pos() || n.End() <= pos {
				return false
			}
			switch n := n.(type) {
			case *ast.TypeSpec:
				if n.Name.Pos() == pos {
					found = n.Type
				}
			case *ast.Field:
				for _, name := range n.Names {
					if name.Pos() == pos {
						found = n.Type
					}
				}
				if len(n.Names) == 0 {
					found = n.Type
				}
			}
			return found == nil
		})
	}
	return found
}

// reasonElsewhere returns the type error of an imported package on the line where something is declared, or "".
func reasonElsewhere(p *packages.Package, declared types.Object) string {
	at := p.Fset.Position(declared.Pos())
	reason := ""
	seen := map[*packages.Package]bool{}
	var visit func(p *packages.Package)
	visit = func(p *packages.Package) {
		if reason != "" || seen[p] {
			return
		}
		seen[p] = true
		for _, e := range p.TypeErrors {
			if there := e.Fset.Position(e.Pos); there.Filename == at.Filename && there.Line == at.Line && !strings.HasPrefix(e.Msg, "\t") {
				reason = oneLine(e.Msg)
				return
			}
		}
		for _, imported := range p.Imports {
			visit(imported)
		}
	}
	visit(p)
	return reason
}
