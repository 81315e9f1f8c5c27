package gen

import (
	"cmp"
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/smallage/smallage/templates"
)

// dependency is a parameter of Dispatch with the place that first asked for it.
type dependency struct {
	*templates.Dependency
	at   token.Position
	task *task
}

// settleDependencies joins what the package's tasks need from the worker. A dependency is known by name and type.
func (s *source) settleDependencies(r *reporter) []*templates.Dependency {
	var all []*dependency
	join := func(t *task, d *templates.Dependency, at token.Position) *templates.Dependency {
		for _, known := range all {
			same := types.Identical(known.Type, d.Type)
			switch {
			case known.Name == d.Name && same:
				return known.Dependency
			case known.Name == d.Name:
				r.report(dependencyTypes, at, d.Name, t.typeText(d.Type), t.typeText(known.Type), known.at)
				return d
			case same:
				r.report(dependencyNames, at, d.Name, known.Name, known.at, t.typeText(d.Type))
				return d
			case swappable(known.Type, d.Type):
				r.report(dependencySwap, at, d.Name, known.Name, known.at, t.typeText(d.Type), t.typeText(known.Type))
				return d
			}
		}
		all = append(all, &dependency{d, at, t})
		return d
	}
	receivers := s.receivers()
	for _, t := range s.tasks {
		if t.decl.Recv != nil {
			t.Method = t.fn.Signature().Recv().Type()
			t.Receiver = join(t, receivers[receiverTypeName(t.Method)], t.at())
		}
		for _, p := range t.params {
			if p.Dependency != nil {
				p.Dependency = join(t, p.Dependency, p.at)
			}
		}
	}
	list := make([]*templates.Dependency, len(all))
	for i, d := range all {
		list[i] = d.Dependency
	}
	slices.SortFunc(list, func(a, b *templates.Dependency) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// receivers returns one dependency per receiver type, named after it: a pointer if any method needs one.
func (s *source) receivers() map[*types.TypeName]*templates.Dependency {
	found := map[*types.TypeName]*templates.Dependency{}
	for _, t := range s.tasks {
		if t.decl.Recv == nil {
			continue
		}
		typ := t.fn.Signature().Recv().Type()
		name := receiverTypeName(typ)
		_, pointer := types.Unalias(typ).(*types.Pointer)
		d := found[name]
		if d == nil {
			d = &templates.Dependency{Name: dependencyName(name.Name()), Type: typ}
			found[name] = d
		} else if pointer {
			d.Type = typ
		}
		d.Nullable = nullable(d.Type)
	}
	return found
}

// receiverTypeName is the declared name of a receiver's type.
func receiverTypeName(t types.Type) *types.TypeName {
	if pointer, ok := types.Unalias(t).(*types.Pointer); ok {
		t = pointer.Elem()
	}
	if named, ok := types.Unalias(t).(*types.Named); ok {
		return named.Obj()
	}
	return nil
}

// dependencyName names a dependency after its type.
func dependencyName(name string) string {
	lower := templates.Unexported(name)
	if token.IsKeyword(lower) || ast.IsExported(lower) {
		return lower + "Receiver"
	}
	return lower
}

// swappable holds for types whose values can be given for one another.
func swappable(a, b types.Type) bool {
	return !embedsEndlessly(a) && !embedsEndlessly(b) && types.AssignableTo(a, b) && types.AssignableTo(b, a)
}
