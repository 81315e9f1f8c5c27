package templates

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"go/types"
	"reflect"
	"slices"
	"strconv"
)

// Fingerprint identifies the file among all that Render of this very program could be given: files with one fingerprint
// have one source. It is made from every field of the model, whatever its kind, so that a field that is added tomorrow
// counts too; it fails where it cannot tell what a field holds.
func Fingerprint(f *File) (sum [sha256.Size]byte, err error) {
	e := &encoder{out: make([]byte, 0, 16<<10), seen: map[any]int{}, types: map[types.Type][]byte{}}
	if err := e.value(reflect.ValueOf(f)); err != nil {
		return sum, fmt.Errorf("take the fingerprint of package %s: %w", f.Path, err)
	}
	return sha256.Sum256(e.out), nil
}

// encoder writes values so that different ones never read the same: whatever varies in length has its length before it,
// and what was written already is told by its number. For the model is no tree: which dependency a parameter takes is a
// matter of identity.
type encoder struct {
	out   []byte
	seen  map[any]int
	types map[types.Type][]byte
}

var typeInterface = reflect.TypeFor[types.Type]()

func (e *encoder) value(v reflect.Value) error {
	switch v.Kind() {
	case reflect.Bool:
		e.flag(v.Bool())
	case reflect.Int, reflect.Int64:
		e.number(int(v.Int()))
	case reflect.String:
		e.text(v.String())
	case reflect.Struct:
		for i := range v.NumField() {
			if err := e.value(v.Field(i)); err != nil {
				return fmt.Errorf("%s.%s: %w", v.Type(), v.Type().Field(i).Name, err)
			}
		}
	case reflect.Slice:
		if e.empty(v) {
			return nil
		}
		e.number(v.Len())
		for i := range v.Len() {
			if err := e.value(v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		return e.mapping(v)
	case reflect.Pointer:
		return e.pointer(v)
	case reflect.Interface:
		if v.Type() != typeInterface || !v.CanInterface() {
			return fmt.Errorf("a %s has no fingerprint", v.Type())
		}
		if !e.empty(v) {
			e.typ(v.Interface().(types.Type))
		}
	default:
		return fmt.Errorf("a %s has no fingerprint", v.Type())
	}
	return nil
}

// empty tells nil from what is there.
func (e *encoder) empty(v reflect.Value) bool {
	e.flag(!v.IsNil())
	return v.IsNil()
}

// pointer tells what was seen before by its number.
func (e *encoder) pointer(v reflect.Value) error {
	if e.empty(v) {
		return nil
	}
	if !v.CanInterface() {
		return fmt.Errorf("an unexported %s has no fingerprint", v.Type())
	}
	n, ok := e.seen[v.Interface()]
	if ok {
		e.number(n)
		return nil
	}
	n = len(e.seen)
	e.seen[v.Interface()] = n
	e.number(n)
	return e.value(v.Elem())
}

func (e *encoder) mapping(v reflect.Value) error {
	if v.Type().Key().Kind() != reflect.String {
		return fmt.Errorf("a %s has no fingerprint", v.Type())
	}
	if e.empty(v) {
		return nil
	}
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
	e.number(len(keys))
	for _, key := range keys {
		e.text(key.String())
		if err := e.value(v.MapIndex(key)); err != nil {
			return err
		}
	}
	return nil
}

// typ writes the answers to all that rendering asks of a type: its text with the path and the name of each package, the
// names that the text needs, its kind, whether it takes several lines, and what an alias stands for. What a name is
// declared as does not show in generated code; a test holds rendering to asking no more.
func (e *encoder) typ(t types.Type) {
	if text, ok := e.types[t]; ok {
		e.out = append(e.out, text...)
		return
	}
	start := len(e.out)
	e.text(types.TypeString(t, func(pkg *types.Package) string { return strconv.Quote(pkg.Path()) + pkg.Name() }))
	walkNames(t, func(pkg *types.Package, name string) {
		if pkg == nil {
			e.number(1)
		} else {
			e.number(2)
			e.text(pkg.Path())
			e.text(pkg.Name())
		}
		e.text(name)
	})
	e.number(0)
	e.number(kindOf(t))
	e.flag(takesLines(t))
	if alias, ok := t.(*types.Alias); ok {
		e.typ(types.Unalias(alias))
	}
	e.types[t] = e.out[start:len(e.out):len(e.out)]
}

// kindOf numbers what a type is written as.
func kindOf(t types.Type) int {
	switch t.(type) {
	case *types.Alias:
		return 1
	case *types.Named:
		return 2
	case *types.Pointer:
		return 3
	case *types.Slice:
		return 4
	}
	return 0
}

func (e *encoder) flag(set bool) {
	if set {
		e.number(1)
	} else {
		e.number(0)
	}
}

func (e *encoder) number(n int) { e.out = binary.AppendVarint(e.out, int64(n)) }

func (e *encoder) text(s string) {
	e.number(len(s))
	e.out = append(e.out, s...)
}
