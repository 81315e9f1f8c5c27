package gen

import (
	"fmt"
	"go/types"
	"reflect"
)

// jsonField is a field as encoding/json finds it in a struct, embedded structs included.
type jsonField struct {
	name  string // in JSON
	place string
}

// structure checks the fields of a struct.
func (w *jsonWalk) structure(t types.Type, s *types.Struct, addressable bool, depth int) string {
	found := &jsonFields{walk: w, inside: map[types.Type]bool{}}
	if problem := found.add(t, s, w.structName(t), addressable, depth); problem != "" {
		return problem
	}
	for i, f := range found.list {
		for _, other := range found.list[:i] {
			if other.name == f.name {
				return fmt.Sprintf("%s and %s both are %q in JSON, so that one of them is lost; give one another name with a json tag",
					other.place, f.place, f.name)
			}
		}
	}
	return ""
}

func (w *jsonWalk) structName(t types.Type) string {
	if _, named := t.(*types.Named); named {
		return w.text(t)
	}
	return "struct"
}

// mostFields is more than a struct has that somebody wrote. Structs that embed one another on many ways would have more
// than can be counted.
const mostFields = 5000

// jsonFields collects the fields of one JSON object.
type jsonFields struct {
	walk   *jsonWalk
	inside map[types.Type]bool // the structs that the walk is in, from the outermost
	looked int                 // fields and structs looked at
	list   []jsonField
}

func (c *jsonFields) add(t types.Type, s *types.Struct, owner string, addressable bool, depth int) string {
	if c.inside[t] {
		return fmt.Sprintf("%s is embedded in itself, and JSON leaves the inner one out; give the field a name", c.walk.text(t))
	}
	if c.looked += s.NumFields() + 1; c.looked > mostFields {
		return fmt.Sprintf("%s has more than %d fields with those that it embeds; use a smaller type", owner, mostFields)
	}
	c.inside[t] = true
	defer delete(c.inside, t)
	for i := range s.NumFields() {
		if problem := c.field(s.Field(i), s.Tag(i), owner, addressable, depth); problem != "" {
			return problem
		}
	}
	return ""
}

func (c *jsonFields) field(f *types.Var, structTag, owner string, addressable bool, depth int) string {
	w, place := c.walk, "field "+owner+"."+f.Name()
	if f.Name() == "_" || empty(f.Type()) && !f.Exported() {
		return "" // carries nothing
	}
	tag := reflect.StructTag(structTag).Get("json")
	name, options := splitTag(tag)
	typ := types.Unalias(f.Type())
	inner, pointed := typ, false
	if pointer, ok := typ.(*types.Pointer); ok {
		inner, pointed = types.Unalias(pointer.Elem()), true
	}
	nested, isStruct := inner.Underlying().(*types.Struct)
	if lock := lockName(inner); lock != "" {
		return w.problem(place, typ, "is a lock, which cannot travel; pass the values without it")
	}
	switch {
	case tag == "-":
		if empty(typ) {
			return ""
		}
		return w.problem(place, typ, `is left out by its tag json:"-", so that it would be lost; remove the tag, or pass a type without the field`)
	case !f.Exported() && !(f.Embedded() && isStruct && !pointed) && f.Pkg() != w.local:
		return w.problem(place, typ, "is unexported, so that JSON would lose it; pass what the worker can make the value from, or give a type of your own MarshalJSON and UnmarshalJSON")
	case !f.Embedded() && !f.Exported(), f.Embedded() && !f.Exported() && !isStruct:
		return w.problem(place, typ, "is unexported, so that JSON would lose it; export it, give the struct MarshalJSON and UnmarshalJSON, or pass its parts as parameters")
	case f.Embedded() && !f.Exported() && pointed:
		return w.problem(place, typ, "is an embedded pointer to an unexported struct, which JSON cannot fill; embed the struct itself, or export its type")
	}
	if f.Embedded() && name == "" && isStruct {
		problem := c.add(inner, nested, w.structName(inner), addressable || pointed, depth+1)
		if problem == "" && pointed && !writesAlways(nested) {
			return w.problem(place, typ, "is an embedded pointer, which arrives as nil where nothing that it points to is written; embed the struct itself, or give the field a name")
		}
		return problem
	}
	if f.Embedded() && !f.Exported() {
		if enc, _ := encodings(inner, addressable); enc != plain {
			return w.problem(place, typ, "is an unexported embedded field with a name in JSON and an encoding of its own, on which encoding/json panics; give it an exported name of its own")
		}
	}
	if problem := w.options(typ, inner, place, options); problem != "" {
		return problem
	}
	if name == "" {
		name = f.Name()
	}
	c.list = append(c.list, jsonField{name, place})
	return w.value(typ, place, addressable, depth)
}

// lockName returns the name of a type that is a lock: it has Lock and Unlock with pointer receivers, or is of package
// sync or sync/atomic.
func lockName(t types.Type) string {
	named, ok := types.Unalias(t).(*types.Named)
	if !ok || types.IsInterface(named) {
		return ""
	}
	obj := named.Obj()
	if pkg := obj.Pkg(); pkg != nil && (pkg.Path() == "sync" || pkg.Path() == "sync/atomic") {
		return pkg.Name() + "." + obj.Name()
	}
	_, isStruct := named.Underlying().(*types.Struct)
	if isStruct && implements(types.NewPointer(named), locker) && !implements(named, locker) {
		return obj.Name()
	}
	return ""
}

// lockIn returns the name of a lock that a copy of the value would copy, or "".
func lockIn(t types.Type) string { return lockInside(t, map[types.Type]bool{}, 0) }

func lockInside(t types.Type, seen map[types.Type]bool, depth int) string {
	if seen[t] || depth > maxDepth {
		return ""
	}
	seen[t] = true
	if name := lockName(t); name != "" {
		return name
	}
	switch u := t.Underlying().(type) {
	case *types.Array:
		return lockInside(u.Elem(), seen, depth+1)
	case *types.Struct:
		for f := range u.Fields() {
			if name := lockInside(f.Type(), seen, depth+1); name != "" {
				return name
			}
		}
	}
	return ""
}

func lockText(t types.Type, name string, local *types.Package) string {
	text := (&jsonWalk{local: local}).text(t)
	if named, ok := types.Unalias(t).(*types.Named); ok && lockName(named) != "" {
		return text + " is a lock"
	}
	return text + " contains the lock " + name
}
