package gen

import (
	"go/ast"
	"go/token"
	"maps"
	"slices"
)

// names returns the names that the package's files declare, with where. Tests and files for other systems count: the
// generated file is built together with them, too.
func (s *source) names() map[string]token.Position {
	declared := map[string]token.Position{}
	for _, f := range s.files {
		if f.syntax.Name.Name != s.Name {
			continue
		}
		for name, pos := range topLevel(f.syntax) {
			if at, known := declared[name]; !known || before(s.at(pos), at) {
				declared[name] = s.at(pos)
			}
		}
	}
	return declared
}

func before(a, b token.Position) bool {
	return a.Filename < b.Filename || a.Filename == b.Filename && a.Offset < b.Offset
}

// topLevel returns the names that a file declares for its package.
func topLevel(f *ast.File) map[string]token.Pos {
	found := map[string]token.Pos{}
	add := func(id *ast.Ident) {
		if _, known := found[id.Name]; !known && id.Name != "_" {
			found[id.Name] = id.Pos()
		}
	}
	for _, decl := range f.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Recv == nil && decl.Name.Name != "init" {
				add(decl.Name)
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					add(spec.Name)
				case *ast.ValueSpec:
					for _, id := range spec.Names {
						add(id)
					}
				}
			}
		}
	}
	return found
}

// imported returns the names that imports bring into the package's files, which no declaration may have.
func (s *source) imported() map[string]token.Position {
	found := map[string]token.Position{}
	for _, f := range s.files {
		if !f.loaded {
			continue
		}
		scope := s.TypesInfo.Scopes[f.syntax]
		if scope == nil {
			continue
		}
		for _, name := range slices.Sorted(slices.Values(scope.Names())) {
			obj := scope.Lookup(name)
			at := s.at(obj.Pos())
			if obj.Pkg() != s.Types {
				at = s.at(f.syntax.Name.Pos()) // of a dot import
			}
			if _, known := found[name]; !known {
				found[name] = at
			}
		}
	}
	return found
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
