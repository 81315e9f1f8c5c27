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
	zeroer            = newInterface(method("IsZero", nil, []*types.Var{variable(types.Typ[types.Bool])}))
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

// promotedFrom returns the embedded field that a method comes from, where the struct has other fields on the way there,
// which the method cannot know of.
func promotedFrom(t types.Type, name string, local *types.Package) string {
	for fields, at := range promotion(t, name, local) {
		for i := range fields.NumFields() {
			if i != at && !empty(fields.Field(i).Type()) {
				return fields.Field(at).Name()
			}
		}
	}
	return ""
}

// methodOf holds where the method of a type is that of a certain other, itself or through embedding.
func methodOf(t types.Type, name, path, receiver string) bool {
	obj, _, _ := types.LookupFieldOrMethod(t, true, nil, name)
	fn, ok := obj.(*types.Func)
	if !ok || fn.Signature().Recv() == nil {
		return false
	}
	declared := receiverTypeName(fn.Signature().Recv().Type())
	return declared != nil && isNamed(declared.Type(), path, receiver)
}

// throughPointer returns what a promoted method panics on where it is nil: "pointer P" or "interface I", or "".
func throughPointer(t types.Type, name string, local *types.Package) string {
	for fields, at := range promotion(t, name, local) {
		field := fields.Field(at)
		if _, isPointer := types.Unalias(field.Type()).(*types.Pointer); isPointer {
			return "pointer " + field.Name()
		}
		if types.IsInterface(field.Type()) {
			return "interface " + field.Name()
		}
	}
	return ""
}

// promotion yields each struct on the way to a promoted method, with the embedded field that leads on.
func promotion(t types.Type, name string, local *types.Package) func(yield func(*types.Struct, int) bool) {
	return func(yield func(*types.Struct, int) bool) {
		_, path, _ := types.LookupFieldOrMethod(t, true, local, name)
		for ; len(path) > 1; path = path[1:] {
			if pointer, isPointer := types.Unalias(t).(*types.Pointer); isPointer {
				t = pointer.Elem()
			}
			fields, ok := t.Underlying().(*types.Struct)
			if !ok || !yield(fields, path[0]) {
				return
			}
			t = fields.Field(path[0]).Type()
		}
	}
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
