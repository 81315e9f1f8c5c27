package gen

import (
	"go/ast"
	"go/types"

	"github.com/smallage/smallage/templates"
)

var errorType = types.Universe.Lookup("error").Type()

// checkResults settles what the task returns beside its error.
func (t *task) checkResults(signature *types.Signature, r *reporter) {
	results := signature.Results()
	n := results.Len()
	at := t.at()
	if t.decl.Type.Results != nil {
		at = t.source.at(t.decl.Type.Results.Pos())
	}
	if n == 0 || !types.Identical(results.At(n-1).Type(), errorType) {
		t.broken = true
		if n == 0 || t.typeText(results.At(n-1).Type()) != "error" { // a type of that name is refused for hiding the predeclared one
			r.report(noError, at, t.label(), t.resultsInstead(results))
		}
		return
	}
	if n > 2 {
		r.report(manyResults, at, t.label(), n)
		t.broken = true
		return
	}
	if n == 1 {
		return
	}
	typ, expr := results.At(0).Type(), resultExpr(t.decl.Type.Results)
	if !t.checkType("the result", typ, false, expr, at, r) {
		return
	}
	t.checkLock("the result", typ, at, r)
	result, problem := classifyResult(typ, t.source.Types)
	if problem != "" {
		r.report(resultType, at, t.label(), t.typeText(typ), problem)
		t.broken = true
	}
	t.Result = result
}

// resultsInstead says what to return where the last result is no error.
func (t *task) resultsInstead(results *types.Tuple) string {
	if results.Len() == 0 {
		return "error"
	}
	first := results.At(0).Type()
	if results.Len() == 1 && isError(first) {
		return "error"
	}
	value := "[]byte"
	if _, problem := classifyResult(first, t.source.Types); problem == "" {
		value = t.typeText(first)
		if results.Len() == 1 {
			return "(" + value + ", error)"
		}
	}
	return "error or (" + value + ", error)"
}

// isError holds for what was meant as an error: a type that is one, or whose pointer is; a pointer to an error or a list
// of some; the package's own type of that name; what did not type-check.
func isError(t types.Type) bool {
	t = types.Unalias(t)
	switch u := t.(type) {
	case *types.Basic:
		return u.Kind() == types.Invalid
	case *types.Pointer:
		return isError(u.Elem())
	case *types.Slice:
		return isError(u.Elem())
	case *types.Named:
		if u.Obj().Name() == "error" {
			return true
		}
	}
	iface := errorType.Underlying().(*types.Interface)
	return implements(t, iface) || implements(types.NewPointer(t), iface)
}

func resultExpr(list *ast.FieldList) ast.Expr { return list.List[0].Type }

// classifyResult finds out how a value travels.
func classifyResult(t types.Type, local *types.Package) (templates.Result, string) {
	if slice, ok := types.Unalias(t).(*types.Slice); ok && types.Identical(slice.Elem(), types.Typ[types.Byte]) {
		return templates.Result{Kind: templates.Bytes}, ""
	}
	target, kind := t, templates.Value
	if pointer, ok := types.Unalias(t).(*types.Pointer); ok {
		target, kind = pointer.Elem(), templates.Pointer
	}
	if isError(t) && types.IsInterface(target) {
		return templates.Result{}, "and an error has no encoding; return one error, joined with errors.Join where there are several"
	}
	if types.IsInterface(target) {
		return templates.Result{}, "an interface, of which a caller cannot know the type; return a concrete type"
	}
	writes, reads := implements(target, binaryMarshaler), implements(types.NewPointer(target), binaryUnmarshaler)
	if !writes && implements(types.NewPointer(target), binaryMarshaler) {
		writes = true
		if kind == templates.Value {
			kind = templates.AddressValue
		}
	}
	switch {
	case !writes && !reads:
		return templates.Result{}, plainResult(t) + ", or give the type MarshalBinary and UnmarshalBinary"
	case !reads:
		return templates.Result{}, "whose pointer has no UnmarshalBinary([]byte) error; add it, or return []byte"
	case !writes:
		return templates.Result{}, "which has no MarshalBinary() ([]byte, error); add it, or return []byte"
	}
	for _, method := range []string{"MarshalBinary", "UnmarshalBinary"} {
		if from := throughPointer(target, method, local); from != "" {
			return templates.Result{}, "whose " + method + " comes from the embedded " + from + " and panics where that is nil; give the type its own"
		}
		if from := promotedFrom(target, method, local); from != "" {
			return templates.Result{}, "whose " + method + " comes from the embedded " + from + " and leaves the other fields out; give the type its own"
		}
	}
	if hasValueReceiver(target, "UnmarshalBinary", local) {
		return templates.Result{}, "whose UnmarshalBinary has a value receiver, so that what it reads is lost; give it a pointer receiver"
	}
	return templates.Result{Kind: kind, Type: target}, ""
}

// plainResult says what to return instead of a type without an encoding.
func plainResult(t types.Type) string {
	switch u := t.Underlying().(type) {
	case *types.Basic:
		if u.Info()&types.IsString != 0 {
			return "which has no encoding of its own; return []byte(s)"
		}
	case *types.Slice:
		if types.Identical(u.Elem(), types.Typ[types.Byte]) {
			return "which is not []byte; convert it and return []byte"
		}
		if named, ok := types.Unalias(u.Elem()).(*types.Named); ok && named.Obj().Name() == "byte" {
			return "whose byte is not the predeclared one; rename that type, and return []byte"
		}
	}
	return "which has no encoding of its own; return []byte, encoded as you decide (json.Marshal …)"
}
