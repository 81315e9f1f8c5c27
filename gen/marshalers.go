package gen

import (
	"go/token"
	"go/types"
)

// The interfaces by which a type brings its own encoding, built here so that no package need be loaded for them.
var (
	jsonMarshaler     = marshaler("MarshalJSON")
	jsonUnmarshaler   = unmarshaler("UnmarshalJSON")
	textMarshaler     = marshaler("MarshalText")
	textUnmarshaler   = unmarshaler("UnmarshalText")
	binaryMarshaler   = marshaler("MarshalBinary")
	binaryUnmarshaler = unmarshaler("UnmarshalBinary")
	locker            = newInterface(method("Lock", nil, nil), method("Unlock", nil, nil))
)

func variable(t types.Type) *types.Var { return types.NewParam(token.NoPos, nil, "", t) }

func method(name string, params, results []*types.Var) *types.Func {
	signature := types.NewSignatureType(nil, nil, nil, types.NewTuple(params...), types.NewTuple(results...), false)
	return types.NewFunc(token.NoPos, nil, name, signature)
}

func newInterface(methods ...*types.Func) *types.Interface {
	return types.NewInterfaceType(methods, nil).Complete()
}

func byteSlice() types.Type { return types.NewSlice(types.Typ[types.Byte]) }

func marshaler(name string) *types.Interface {
	return newInterface(method(name, nil, []*types.Var{variable(byteSlice()), variable(errorType)}))
}

func unmarshaler(name string) *types.Interface {
	return newInterface(method(name, []*types.Var{variable(byteSlice())}, []*types.Var{variable(errorType)}))
}

func implements(t types.Type, i *types.Interface) bool {
	return !embedsEndlessly(t) && types.Implements(t, i)
}

// embedsEndlessly holds for structs that embed ever new types: type S[P any] struct{ *S[[]P] }. The compiler refuses them,
// but a package with type errors is looked at all the same, and looking for a method in one would never end.
func embedsEndlessly(t types.Type) bool {
	return embeds(t, map[types.Type]bool{}, 0)
}

func embeds(t types.Type, seen map[types.Type]bool, depth int) bool {
	t = types.Unalias(t)
	if pointer, ok := t.Underlying().(*types.Pointer); ok {
		t = types.Unalias(pointer.Elem())
	}
	if seen[t] {
		return false
	}
	seen[t] = true
	if depth > maxDepth {
		return true
	}
	fields, ok := t.Underlying().(*types.Struct)
	if !ok {
		return false
	}
	for f := range fields.Fields() {
		if f.Embedded() && embeds(f.Type(), seen, depth+1) {
			return true
		}
	}
	return false
}

// promotedFrom returns the embedded field that a method comes from, where the struct has other fields, which the method
// cannot know of.
func promotedFrom(t types.Type, name string, local *types.Package) string {
	fields, ok := t.Underlying().(*types.Struct)
	if !ok || fields.NumFields() < 2 {
		return ""
	}
	_, path, _ := types.LookupFieldOrMethod(t, true, local, name)
	if len(path) < 2 {
		return ""
	}
	others := 0
	for i := range fields.NumFields() {
		if i != path[0] && !empty(fields.Field(i).Type()) {
			others++
		}
	}
	if others == 0 {
		return ""
	}
	return fields.Field(path[0]).Name()
}

// throughPointer returns the embedded pointer that a method comes from, or "".
func throughPointer(t types.Type, name string, local *types.Package) string {
	fields, ok := t.Underlying().(*types.Struct)
	if !ok {
		return ""
	}
	_, path, _ := types.LookupFieldOrMethod(t, true, local, name)
	for len(path) > 1 {
		field := fields.Field(path[0])
		inner := types.Unalias(field.Type())
		if _, isPointer := inner.(*types.Pointer); isPointer {
			return field.Name()
		}
		if fields, ok = inner.Underlying().(*types.Struct); !ok {
			return ""
		}
		path = path[1:]
	}
	return ""
}

// empty holds for types without data.
func empty(t types.Type) bool { return emptyInside(t, map[types.Type]bool{}) }

func emptyInside(t types.Type, seen map[types.Type]bool) bool {
	if seen[t] {
		return true // as far as this part of it goes
	}
	seen[t] = true
	switch u := t.Underlying().(type) {
	case *types.Array:
		return u.Len() == 0 || emptyInside(u.Elem(), seen)
	case *types.Struct:
		for f := range u.Fields() {
			if len(seen) > mostFields || !emptyInside(f.Type(), seen) {
				return false
			}
		}
		return true
	}
	return false
}
