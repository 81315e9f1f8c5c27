package gen

import (
	"go/types"
	"slices"
	"strings"
)

// invalidPart returns what in a type did not type-check: the way to it, and what is declared with it where that is not
// the type itself; false where all of it did. Unless it is to go deep, it looks only at what the type is written with: a
// dependency may well be a struct that holds what is yet to be generated.
func (s *source) invalidPart(t types.Type, deep bool) (way string, declared types.Object, invalid bool) {
	w := &invalidWalk{source: s, seen: map[types.Type]bool{}, deep: deep}
	if !w.find(t, 0) {
		return "", nil, false
	}
	slices.Reverse(w.way)
	return strings.Join(w.way, ""), w.declared, true
}

// maxTypes ends the walk through types that expand without end in more than one place, which depth alone does not.
const maxTypes = 10_000

type invalidWalk struct {
	source   *source
	seen     map[types.Type]bool
	deep     bool
	way      []string     // from the invalid part outwards
	declared types.Object // the innermost field or type around it
}

// find reports whether a part of the type is invalid, and notes the way to it.
func (w *invalidWalk) find(t types.Type, depth int) bool {
	if w.seen[t] || depth > maxDepth || len(w.seen) > maxTypes {
		return false
	}
	w.seen[t] = true
	depth++
	switch t := t.(type) {
	case *types.Basic:
		return t.Kind() == types.Invalid
	case *types.Alias:
		return w.find(types.Unalias(t), depth) && w.inside("inside of "+t.Obj().Name()+": ", t.Obj()) ||
			w.arguments(t.TypeArgs(), depth)
	case *types.Named:
		return w.arguments(t.TypeArgs(), depth) ||
			w.deep && (w.find(t.Underlying(), depth) || w.source.brokenType(t.Obj())) && w.inside("inside of "+t.Obj().Name()+": ", t.Obj())
	case *types.Pointer:
		return w.find(t.Elem(), depth)
	case *types.Slice:
		return w.find(t.Elem(), depth)
	case *types.Array:
		return w.find(t.Elem(), depth)
	case *types.Chan:
		return w.find(t.Elem(), depth)
	case *types.Map:
		return w.find(t.Key(), depth) || w.find(t.Elem(), depth)
	case *types.Struct:
		for f := range t.Fields() {
			if w.find(f.Type(), depth) {
				return w.inside("field "+f.Name()+": ", f)
			}
		}
	case *types.Interface:
		return w.iface(t, depth)
	case *types.Signature:
		return w.tuple(t.Params(), depth) || w.tuple(t.Results(), depth)
	}
	return false
}

// inside notes a step of the way. It returns true.
func (w *invalidWalk) inside(step string, declared types.Object) bool {
	if w.declared == nil {
		w.declared = declared
	}
	w.way = append(w.way, step)
	return true
}

func (w *invalidWalk) iface(t *types.Interface, depth int) bool {
	for m := range t.ExplicitMethods() {
		if w.find(m.Type(), depth) {
			return w.inside("method "+m.Name()+": ", m)
		}
	}
	for embedded := range t.EmbeddedTypes() {
		if w.find(embedded, depth) {
			return true
		}
	}
	return false
}

func (w *invalidWalk) tuple(t *types.Tuple, depth int) bool {
	for v := range t.Variables() {
		if w.find(v.Type(), depth) {
			return true
		}
	}
	return false
}

func (w *invalidWalk) arguments(list *types.TypeList, depth int) bool {
	for t := range list.Types() {
		if w.find(t, depth) {
			return true
		}
	}
	return false
}
