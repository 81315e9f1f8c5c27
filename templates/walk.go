package templates

import (
	"go/types"
	"slices"
)

// walkNames calls visit for every name that is needed to write the type: the package is nil for a predeclared name.
func walkNames(t types.Type, visit func(pkg *types.Package, name string)) {
	switch t := t.(type) {
	case *types.Basic:
		if t.Kind() == types.UnsafePointer {
			visit(types.Unsafe, t.Name())
			return
		}
		visit(nil, t.Name())
	case *types.Alias:
		visit(t.Obj().Pkg(), t.Obj().Name())
		walkArguments(t.TypeArgs(), visit)
	case *types.Named:
		visit(t.Obj().Pkg(), t.Obj().Name())
		walkArguments(t.TypeArgs(), visit)
	case *types.Pointer:
		walkNames(t.Elem(), visit)
	case *types.Slice:
		walkNames(t.Elem(), visit)
	case *types.Array:
		walkNames(t.Elem(), visit)
	case *types.Chan:
		walkNames(t.Elem(), visit)
	case *types.Map:
		walkNames(t.Key(), visit)
		walkNames(t.Elem(), visit)
	case *types.Struct:
		for field := range t.Fields() {
			walkNames(field.Type(), visit)
		}
	case *types.Tuple:
		for v := range t.Variables() {
			walkNames(v.Type(), visit)
		}
	case *types.Signature:
		walkNames(t.Params(), visit)
		walkNames(t.Results(), visit)
	case *types.Interface:
		for method := range t.ExplicitMethods() {
			walkNames(method.Type(), visit)
		}
		for embedded := range t.EmbeddedTypes() {
			walkNames(embedded, visit)
		}
	case *types.Union:
		for term := range t.Terms() {
			walkNames(term.Type(), visit)
		}
	}
}

func walkArguments(list *types.TypeList, visit func(pkg *types.Package, name string)) {
	for arg := range list.Types() {
		walkNames(arg, visit)
	}
}

// WalkNames calls visit for every name that is needed to write the type: the package is nil for a predeclared name.
func WalkNames(t types.Type, visit func(pkg *types.Package, name string)) { walkNames(t, visit) }

// takesLines holds for types that gofmt writes on several lines: inline structs and interfaces with several elements.
func takesLines(t types.Type) bool {
	switch t := t.(type) {
	case *types.Pointer:
		return takesLines(t.Elem())
	case *types.Slice:
		return takesLines(t.Elem())
	case *types.Array:
		return takesLines(t.Elem())
	case *types.Chan:
		return takesLines(t.Elem())
	case *types.Map:
		return takesLines(t.Key()) || takesLines(t.Elem())
	case *types.Struct:
		for f := range t.Fields() {
			if t.NumFields() > 1 || takesLines(f.Type()) {
				return true
			}
		}
	case *types.Interface:
		return t.NumExplicitMethods()+t.NumEmbeddeds() > 1 || anyTakesLines(slices.Collect(t.ExplicitMethods()))
	case *types.Signature:
		return anyTakesLines(slices.Collect(t.Params().Variables())) || anyTakesLines(slices.Collect(t.Results().Variables()))
	case *types.Named:
		return anyArgTakesLines(t.TypeArgs())
	case *types.Alias:
		return anyArgTakesLines(t.TypeArgs())
	}
	return false
}

func anyTakesLines[O types.Object](list []O) bool {
	return slices.ContainsFunc(list, func(o O) bool { return takesLines(o.Type()) })
}

func anyArgTakesLines(list *types.TypeList) bool {
	for t := range list.Types() {
		if takesLines(t) {
			return true
		}
	}
	return false
}
