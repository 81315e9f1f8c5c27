package gen

import (
	"fmt"
	"go/types"
)

// maxDepth ends the walk through types that expand without end (type T[P any] struct{ next *T[[]P] }), which the
// compiler refuses, too, but later.
const maxDepth = 60

// checkJSON returns what keeps values of a type from travelling as JSON unharmed, with what to do instead; "" where
// nothing does. It walks the type as encoding/json does, once for writing and once for reading. The argument struct is
// encoded by its address, so that methods with pointer receivers are called wherever a value has an address: not in maps.
func checkJSON(t types.Type, local *types.Package) string {
	if name := lockIn(t); name != "" {
		return fmt.Sprintf("%s, and passing it would copy the lock; pass the values without it", lockText(t, name, local))
	}
	w := &jsonWalk{local: local, seen: map[visit]bool{}}
	return w.value(t, "", true, 0)
}

type visit struct {
	typ         types.Type
	addressable bool
}

type jsonWalk struct {
	local *types.Package
	seen  map[visit]bool
}

func (w *jsonWalk) text(t types.Type) string {
	const limit = 80
	text := []rune(typeText(t, w.local))
	if len(text) > limit {
		return string(text[:limit]) + "…"
	}
	return string(text)
}

// problem writes what is wrong with the value at a place.
func (w *jsonWalk) problem(place string, t types.Type, format string, args ...any) string {
	subject := place + ", " + w.text(t) + ","
	if place == "" {
		subject = w.text(t)
	}
	return subject + " " + fmt.Sprintf(format, args...)
}

// value checks the value of a type at a place: "" for the parameter itself, "field Order.ID" inside of it.
func (w *jsonWalk) value(t types.Type, place string, addressable bool, depth int) string {
	t = types.Unalias(t)
	if key := (visit{t, addressable}); w.seen[key] {
		return ""
	} else if depth > maxDepth || embedsEndlessly(t) {
		return w.problem(place, t, "is nested too deeply; use a type that does not expand without end")
	} else {
		w.seen[key] = true
	}
	if name := lockName(t); name != "" {
		return w.problem(place, t, "is a lock, which cannot travel; pass the values without it")
	}
	if problem, done := w.ownEncoding(t, place, addressable); done {
		return problem
	}
	depth++
	switch u := t.Underlying().(type) {
	case *types.Basic:
		switch {
		case u.Kind() == types.UnsafePointer:
			return w.problem(place, t, "is an address, which means nothing in another process; pass what it points to")
		case u.Info()&types.IsComplex != 0:
			return w.problem(place, t, "is complex, which JSON has no form for; pass the two parts as floats")
		}
		return ""
	case *types.Interface:
		return w.iface(t, u, place)
	case *types.Chan:
		return w.problem(place, t, "is a channel, which JSON cannot carry; return a value, or inject the channel")
	case *types.Signature:
		return w.problem(place, t, "is a function, which JSON cannot carry; pass data that selects it, or inject it")
	case *types.Pointer:
		if pointsToItself(t) {
			return w.problem(place, t, "is a pointer to nothing but itself; use a type that holds a value")
		}
		if w.writesNull(u.Elem()) {
			return w.problem(place, t, "may be nil itself or point to what is written as null, and JSON does not tell the two apart; use %s", w.text(u.Elem()))
		}
		return w.value(u.Elem(), place, true, depth)
	case *types.Slice:
		return w.value(u.Elem(), place, true, depth)
	case *types.Array:
		return w.value(u.Elem(), place, addressable, depth)
	case *types.Map:
		if problem := w.mapKey(u.Key(), place); problem != "" {
			return problem
		}
		return w.value(u.Elem(), place, false, depth)
	case *types.Struct:
		return w.structure(t, u, addressable, depth)
	}
	return w.problem(place, t, "is of a kind that JSON cannot carry; use another type")
}

// iface says what to write instead of an interface.
func (w *jsonWalk) iface(t types.Type, i *types.Interface, place string) string {
	switch {
	case types.Identical(t, errorType):
		return w.problem(place, t, "is an interface, and JSON forgets the type of what it holds; pass the error's text as a string")
	case isContext(t):
		return w.problem(place, t, "is a context, which means nothing in another process; a handler's own is its first parameter")
	case place == "" && i.NumMethods() > 0:
		return w.problem(place, t, "is an interface, and JSON forgets the type of what it holds; name the parameter in inject= where the worker supplies it, else use a concrete type, or json.RawMessage")
	}
	return w.problem(place, t, "is an interface, and JSON forgets the type of what it holds; use a concrete type, or json.RawMessage")
}

// writesNull holds for types whose nil value JSON writes as null.
func (w *jsonWalk) writesNull(t types.Type) bool {
	if isNamed(t, "encoding/json", "RawMessage") || isNamed(t, "github.com/google/uuid", "NullUUID") {
		return true
	}
	switch types.Unalias(t).Underlying().(type) {
	case *types.Pointer, *types.Slice, *types.Map:
		enc, _ := encodings(t, true)
		return enc != asText // MarshalJSON of a nil value mostly writes null, too
	}
	return false
}

// pointsToItself holds for type P *P and its like, which ends at no value.
func pointsToItself(t types.Type) bool {
	for seen := map[types.Type]bool{}; ; {
		t = types.Unalias(t)
		pointer, ok := t.Underlying().(*types.Pointer)
		if !ok || len(seen) > maxDepth {
			return false
		}
		if seen[t] {
			return true
		}
		seen[t] = true
		t = pointer.Elem()
	}
}

// mapKey checks a map's key, which JSON writes as text.
func (w *jsonWalk) mapKey(key types.Type, place string) string {
	key = types.Unalias(key)
	writes := implements(key, textMarshaler)
	reads := implements(types.NewPointer(key), textUnmarshaler)
	basic, _ := key.Underlying().(*types.Basic)
	isString := basic != nil && basic.Info()&types.IsString != 0
	isInteger := basic != nil && basic.Info()&types.IsInteger != 0
	if place == "" {
		place = "the key of the map"
	} else {
		place = "the map's key in " + place
	}
	switch {
	case isString && reads:
		return w.problem(place, key, "is written as the string that it is, but read by UnmarshalText; use string")
	case isString, isInteger && !writes && !reads:
		return ""
	case writes && reads && methodOf(key, "MarshalText", "time", "Time"):
		return w.problem(place, key, "tells apart instants whose text is one (the monotonic clock, the location), so that entries could be lost; use int64 with UnixNano, or the text")
	case writes && reads:
		return w.lossyMethods(key, place, "MarshalText", "UnmarshalText")
	case writes:
		return w.problem(place, key, "has MarshalText but no UnmarshalText; add it, or use a string or an integer")
	case reads:
		return w.problem(place, key, "has UnmarshalText but no MarshalText with a value receiver; add it, or use a string or an integer")
	}
	return w.problem(place, key, "is neither text nor an integer; use a string, an integer or a type with MarshalText and UnmarshalText")
}

type encoding int

const (
	plain encoding = iota // by its structure
	asJSON
	asText
	unreachable // a method with a pointer receiver, of a value without an address
)

// encodings returns how encoding/json writes and reads a type that is no pointer.
func encodings(t types.Type, addressable bool) (writes, reads encoding) {
	pointer := types.NewPointer(t)
	switch {
	case implements(t, jsonMarshaler), addressable && implements(pointer, jsonMarshaler):
		writes = asJSON
	case implements(pointer, jsonMarshaler):
		writes = unreachable
	case implements(t, textMarshaler), addressable && implements(pointer, textMarshaler):
		writes = asText
	case implements(pointer, textMarshaler):
		writes = unreachable
	}
	switch {
	case implements(pointer, jsonUnmarshaler):
		reads = asJSON
	case implements(pointer, textUnmarshaler):
		reads = asText
	}
	return writes, reads
}

// ownEncoding checks a type that brings its own encoding; done is false for one that does not.
func (w *jsonWalk) ownEncoding(t types.Type, place string, addressable bool) (problem string, done bool) {
	switch t.Underlying().(type) {
	case *types.Pointer, *types.Interface:
		return "", false
	}
	writes, reads := encodings(t, addressable)
	var marshal, unmarshal string
	switch {
	case writes == plain && reads == plain:
		return "", false
	case writes == unreachable:
		return w.problem(place, t, "has a marshalling method with a pointer receiver, which is not called for a map's values; use *%s there", w.text(t)), true
	case writes == asJSON && reads == asJSON:
		marshal, unmarshal = "MarshalJSON", "UnmarshalJSON"
	case writes == asText && reads == asText:
		marshal, unmarshal = "MarshalText", "UnmarshalText"
	case writes == plain && reads == asJSON:
		return w.problem(place, t, "has UnmarshalJSON but no MarshalJSON; add it, so that what is written can be read"), true
	case writes == plain && reads == asText:
		return w.problem(place, t, "has UnmarshalText but no MarshalText; add it, so that what is written can be read"), true
	case writes == asJSON:
		return w.problem(place, t, "has MarshalJSON but no UnmarshalJSON; add it, so that what is written can be read"), true
	case reads == asJSON:
		return w.problem(place, t, "is written by MarshalText but read by UnmarshalJSON; add MarshalJSON"), true
	default:
		return w.problem(place, t, "has MarshalText but no UnmarshalText; add it, so that what is written can be read"), true
	}
	if problem := w.lossyMethods(t, place, marshal, unmarshal); problem != "" {
		return problem, true
	}
	if isNamed(t, "math/big", "Float") {
		return w.problem(place, t, "is read back with 64 bits of precision at most; pass its Text as a string"), true
	}
	return "", true
}

// lossyMethods returns how a type's own encoding loses something or panics, or "".
func (w *jsonWalk) lossyMethods(t types.Type, place, marshal, unmarshal string) string {
	for _, name := range []string{marshal, unmarshal} {
		if from := throughPointer(t, name, w.local); from != "" {
			return w.problem(place, t, "has the %s of the embedded %s, which panics where that is nil; embed the value, or give the field a name", name, from)
		}
		if from := promotedFrom(t, name, w.local); from != "" {
			return w.problem(place, t, "has the %s of the embedded %s, which leaves the other fields out; give the type its own, or the field a name", name, from)
		}
	}
	if hasValueReceiver(t, unmarshal, w.local) {
		return w.problem(place, t, "has an %s with a value receiver, so that what it reads is lost; give it a pointer receiver", unmarshal)
	}
	return ""
}

// hasValueReceiver holds for a method that cannot change its receiver. A map is no exception: it is nil when it is read.
func hasValueReceiver(t types.Type, name string, local *types.Package) bool {
	obj, path, _ := types.LookupFieldOrMethod(t, true, local, name)
	fn, ok := obj.(*types.Func)
	if !ok || len(path) > 1 || fn.Signature().Recv() == nil {
		return false
	}
	_, isPointer := types.Unalias(fn.Signature().Recv().Type()).(*types.Pointer)
	return !isPointer
}
