package gen

import (
	"go/ast"
	"go/token"
	"go/types"
)

// redeclared reports a function that the package declares a second time. The first of the two is what counts, and
// whatever else could be said of the second would only repeat this.
func (t *task) redeclared(r *reporter) bool {
	name := t.decl.Name
	if t.decl.Recv == nil && name.Name == "init" || name.Name == "_" {
		return false
	}
	first := t.source.Types.Scope().Lookup(name.Name)
	if t.decl.Recv != nil {
		if first = nil; t.checkReceiver() != "" {
			return false
		}
		receiver := receiverTypeName(t.fn.Signature().Recv().Type())
		if obj, path, _ := types.LookupFieldOrMethod(types.NewPointer(receiver.Type()), true, t.source.Types, name.Name); len(path) == 1 {
			first = obj
		}
	}
	if first == nil || first.Pos() == name.Pos() {
		return false
	}
	r.report(redeclared, t.at(), t.label(), t.source.at(first.Pos()))
	return true
}

// checkRepeated refuses a name that the signature has twice, be it the receiver's, a parameter's or a result's.
func (t *task) checkRepeated(r *reporter) {
	seen := map[string]token.Pos{}
	for _, list := range []*ast.FieldList{t.decl.Recv, t.decl.Type.Params, t.decl.Type.Results} {
		if list == nil {
			continue
		}
		for _, field := range list.List {
			for _, id := range field.Names {
				if id.Name == "_" {
					continue
				}
				if first, twice := seen[id.Name]; twice {
					r.report(redeclared, t.source.at(id.Pos()), id.Name, t.source.at(first))
					t.broken = true
					continue
				}
				seen[id.Name] = id.Pos()
			}
		}
	}
}
