package smallage

import (
	"encoding"
	"encoding/hex"
	"encoding/json"
	"reflect"
	"strconv"
	"sync"

	"github.com/google/uuid"
)

// Arguments that are all texts, whole numbers and truth values are written here, one after another, in the plain form
// that decodePlain reads. All others are left to encoding/json, and so are a text that needs escapes and the words for what
// cannot be written. It differs from encoding/json in nothing but its speed.

// argsWriter writes the arguments of one type. The nil writer leaves all to encoding/json.
type argsWriter struct {
	fields []writtenField
	size   int // in bytes, roughly
}

type writtenField struct {
	prefix string // with what separates it from the one before
	kind   plainKind
}

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
	uuidType      = reflect.TypeFor[uuid.UUID]()
)

var argsWriters sync.Map // reflect.Type → *argsWriter

func argsWriterOf(t reflect.Type) *argsWriter {
	if w, ok := argsWriters.Load(t); ok {
		return w.(*argsWriter)
	}
	w, _ := argsWriters.LoadOrStore(t, newArgsWriter(t))
	return w.(*argsWriter)
}

func newArgsWriter(t reflect.Type) *argsWriter {
	pointer := reflect.PointerTo(t)
	if t.Kind() != reflect.Struct || pointer.Implements(jsonMarshaler) || pointer.Implements(textMarshaler) {
		return nil
	}
	w, seen := &argsWriter{size: 2}, map[string]bool{}
	for i := range t.NumField() {
		f := writtenField{plainPrefix(t.Field(i)), writtenKindOf(t.Field(i).Type)}
		if f.prefix == "" || f.kind == plainOther || seen[f.prefix] {
			return nil
		}
		seen[f.prefix] = true
		if i > 0 {
			f.prefix = "," + f.prefix
		}
		w.fields = append(w.fields, f)
		w.size += len(f.prefix) + 38
	}
	return w
}

func writtenKindOf(t reflect.Type) plainKind {
	if t == uuidType {
		return plainUUID
	}
	return kindBy(t, jsonMarshaler, textMarshaler)
}

// write returns the arguments as JSON, or nil where encoding/json must do it.
func (w *argsWriter) write(args reflect.Value) []byte {
	if w == nil {
		return nil
	}
	out := append(make([]byte, 0, w.size), '{')
	for i := range w.fields {
		f, field := &w.fields[i], args.Field(i)
		out = append(out, f.prefix...)
		switch f.kind {
		case plainUUID:
			out = append(out, '"')
			out = appendUUID(out, field.Addr().Interface().(*uuid.UUID))
			out = append(out, '"')
		case plainString:
			out = appendText(out, field.String())
		case plainText:
			text, err := field.Addr().Interface().(encoding.TextMarshaler).MarshalText()
			if err != nil {
				return nil
			}
			out = appendText(out, string(text))
		case plainBool:
			out = strconv.AppendBool(out, field.Bool())
		case plainInt:
			out = strconv.AppendInt(out, field.Int(), 10)
		case plainUint:
			out = strconv.AppendUint(out, field.Uint(), 10)
		}
	}
	return append(out, '}')
}

// appendText appends a text as a JSON string.
func appendText(out []byte, text string) []byte {
	for i := range len(text) {
		if !plainByte(text[i]) {
			escaped, _ := json.Marshal(text) // it has no error for a string
			return append(out, escaped...)
		}
	}
	out = append(out, '"')
	out = append(out, text...)
	return append(out, '"')
}

// appendUUID appends the canonical form of an id.
func appendUUID(out []byte, id *uuid.UUID) []byte {
	n := len(out)
	out = append(out, "00000000-0000-0000-0000-000000000000"...)
	text := out[n:]
	hex.Encode(text, id[:4])
	hex.Encode(text[9:], id[4:6])
	hex.Encode(text[14:], id[6:8])
	hex.Encode(text[19:], id[8:10])
	hex.Encode(text[24:], id[10:])
	return out
}
