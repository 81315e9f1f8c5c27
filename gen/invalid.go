package gen

import (
	"fmt"
	"go/types"
)

// invalidPart returns what in a type did not type-check, or "". Unless it is to go deep, it looks only at what the type
// is written with: a dependency may well be a struct that holds what is yet to be generated.
func invalidPart(t types.Type, deep bool) string {
	w := &invalidWalk{seen: map[types.Type]bool{}, deep: deep}
	return w.find(t, 0)
}

// maxTypes ends the walk through types that expand without end in more than one place, which depth alone does not.
const maxTypes = 10_000

type invalidWalk struct {
	seen map[types.Type]bool
	deep bool
}

func (w *invalidWalk) find(t types.Type, depth int) string {
	if w.seen[t] || depth > maxDepth || len(w.seen) > maxTypes {
		return ""
	}
	w.seen[t] = true
	depth++
	switch t := t.(type) {
	case *types.Basic:
		if t.Kind() == types.Invalid {
			return "invalid type"
		}
	case *types.Alias:
		if problem := w.find(types.Unalias(t), depth); problem != "" {
			return fmt.Sprintf("%s is an alias of an invalid type", t.Obj().Name())
		}
		return w.arguments(t.TypeArgs(), depth)
	case *types.Named:
		if problem := w.arguments(t.TypeArgs(), depth); problem != "" || !w.deep {
			return problem
		}
		if problem := w.find(t.Underlying(), depth); problem != "" {
			return "inside of " + t.Obj().Name() + ": " + problem
		}
	case *types.Pointer:
		return w.find(t.Elem(), depth)
	case *types.Slice:
		return w.find(t.Elem(), depth)
	case *types.Array:
		return w.find(t.Elem(), depth)
	case *types.Chan:
		return w.find(t.Elem(), depth)
	case *types.Map:
		if problem := w.find(t.Key(), depth); problem != "" {
			return problem
		}
		return w.find(t.Elem(), depth)
	case *types.Struct:
		for f := range t.Fields() {
			if problem := w.find(f.Type(), depth); problem != "" {
				return "field " + f.Name() + ": " + problem
			}
		}
	case *types.Interface:
		return w.iface(t, depth)
	case *types.Signature:
		return w.signature(t, depth)
	}
	return ""
}

func (w *invalidWalk) iface(t *types.Interface, depth int) string {
	for m := range t.ExplicitMethods() {
		if problem := w.find(m.Type(), depth); problem != "" {
			return "method " + m.Name() + ": " + problem
		}
	}
	for embedded := range t.EmbeddedTypes() {
		if problem := w.find(embedded, depth); problem != "" {
			return problem
		}
	}
	return ""
}

func (w *invalidWalk) signature(t *types.Signature, depth int) string {
	for _, tuple := range []*types.Tuple{t.Params(), t.Results()} {
		for v := range tuple.Variables() {
			if problem := w.find(v.Type(), depth); problem != "" {
				return problem
			}
		}
	}
	return ""
}

func (w *invalidWalk) arguments(list *types.TypeList, depth int) string {
	for t := range list.Types() {
		if problem := w.find(t, depth); problem != "" {
			return problem
		}
	}
	return ""
}
