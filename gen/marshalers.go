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

func implements(t types.Type, i *types.Interface) bool { return types.Implements(t, i) }

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
func empty(t types.Type) bool { return emptyAt(t, 0) }

func emptyAt(t types.Type, depth int) bool {
	if depth > maxDepth {
		return false
	}
	switch u := t.Underlying().(type) {
	case *types.Array:
		return u.Len() == 0 || emptyAt(u.Elem(), depth+1)
	case *types.Struct:
		for f := range u.Fields() {
			if !emptyAt(f.Type(), depth+1) {
				return false
			}
		}
		return true
	}
	return false
}
