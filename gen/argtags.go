package gen

import (
	"go/types"
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// options checks what the json tag asks for.
func (w *jsonWalk) options(typ, inner types.Type, place string, options []string) string {
	if slices.Contains(options, "string") {
		if writes, reads := encodings(inner, true); writes != plain || reads != plain {
			return w.problem(place, typ, "has the tag option string, which does not go with an encoding of its own; remove the option")
		}
	}
	if slices.Contains(options, "omitempty") && losesEmpty(typ) {
		if hasIsZero(typ) || slices.Contains(options, "omitzero") {
			return w.problem(place, typ, "is left out by omitempty where it is empty, and arrives as nil; remove the option")
		}
		return w.problem(place, typ, "is left out by omitempty where it is empty, and arrives as nil; write omitzero, which leaves out only nil")
	}
	if slices.Contains(options, "omitzero") && hasIsZero(typ) && !exactIsZero(typ, w.local) {
		if _, isPointer := typ.Underlying().(*types.Pointer); isPointer {
			return w.problem(place, typ, "is left out by omitzero where its IsZero says so, and arrives as nil; write omitempty, which leaves out only nil")
		}
		return w.problem(place, typ, "is left out by omitzero where its IsZero says so, whatever it holds, and arrives as its zero value; remove the option")
	}
	return ""
}

// losesEmpty holds for types with an empty value that is not their nil. Of RawMessage such a value is not JSON, and of IP
// it is no address, either.
func losesEmpty(t types.Type) bool {
	switch t.Underlying().(type) {
	case *types.Slice, *types.Map:
		return !isNamed(t, "encoding/json", "RawMessage") && !isNamed(t, "net", "IP")
	}
	return false
}

// hasIsZero holds for types that omitzero asks whether they are zero.
func hasIsZero(t types.Type) bool {
	return implements(t, zeroer) || implements(types.NewPointer(t), zeroer)
}

// exactIsZero holds for types known to say IsZero of nothing but what an absent value arrives as.
func exactIsZero(t types.Type, local *types.Package) bool {
	if _, isPointer := t.Underlying().(*types.Pointer); isPointer {
		return false
	}
	known := methodOf(t, "IsZero", "time", "Time") || methodOf(t, "IsZero", "github.com/smallage/smallage/runtime", "JobID")
	return known && promotedFrom(t, "IsZero", local) == "" && throughPointer(t, "IsZero", local) == ""
}

// writesAlways holds for structs of which every value has a member in JSON. Reading makes the struct that an embedded
// pointer points to only when it meets one.
func writesAlways(s *types.Struct) bool {
	for i := range s.NumFields() {
		f := s.Field(i)
		tag := reflect.StructTag(s.Tag(i)).Get("json")
		if f.Name() == "_" || tag == "-" {
			continue
		}
		name, options := splitTag(tag)
		typ := types.Unalias(f.Type())
		pointer, pointed := typ.(*types.Pointer)
		inner := typ
		if pointed {
			inner = types.Unalias(pointer.Elem())
		}
		nested, isStruct := inner.Underlying().(*types.Struct)
		switch {
		case f.Embedded() && name == "" && isStruct:
			if !pointed && writesAlways(nested) {
				return true
			}
		case !f.Exported() && !(f.Embedded() && isStruct):
		case !mayBeLeftOut(typ, options):
			return true
		}
	}
	return false
}

// mayBeLeftOut holds for fields that have no member in JSON for some value.
func mayBeLeftOut(t types.Type, options []string) bool {
	if slices.Contains(options, "omitzero") {
		return true
	}
	if !slices.Contains(options, "omitempty") {
		return false
	}
	switch u := t.Underlying().(type) {
	case *types.Struct:
		return false
	case *types.Array:
		return u.Len() == 0
	}
	return true
}

// splitTag reads a json tag as encoding/json does: a name that is not valid there counts as none.
func splitTag(tag string) (name string, options []string) {
	name, rest, _ := strings.Cut(tag, ",")
	if rest != "" {
		options = strings.Split(rest, ",")
	}
	for _, r := range name {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", r) {
			return "", options
		}
	}
	return name, options
}
