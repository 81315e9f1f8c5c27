package smallage

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Arguments come almost always in the very form in which the generated wrapper has written them: all parameters in
// order, without spaces. decodePlain reads that form value by value; whatever else comes is left to encoding/json, whose
// verdict and words count. It differs from encoding/json in nothing but its speed.

// plainKind says how a parameter's value is read.
type plainKind uint8

const (
	plainOther plainKind = iota // by encoding/json
	plainString
	plainBool
	plainInt
	plainUint
	plainText // a quoted text for UnmarshalText, or of MarshalText
	plainUUID // when writing
)

var (
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
	jsonNumber      = reflect.TypeFor[json.Number]()
)

func plainKindOf(t reflect.Type) plainKind { return kindBy(t, jsonUnmarshaler, textUnmarshaler) }

// kindBy is the kind of a type, where these are the interfaces by which it may bring a JSON or a text form of its own.
func kindBy(t, ownJSON, ownText reflect.Type) plainKind {
	pointer := reflect.PointerTo(t)
	switch kind := t.Kind(); {
	case pointer.Implements(ownJSON), t == jsonNumber:
		return plainOther
	case pointer.Implements(ownText):
		if kind == reflect.Pointer || kind == reflect.Interface {
			return plainOther // may be nil
		}
		return plainText
	case kind == reflect.String:
		return plainString
	case kind == reflect.Bool:
		return plainBool
	case kind >= reflect.Int && kind <= reflect.Int64:
		return plainInt
	case kind >= reflect.Uint && kind <= reflect.Uintptr:
		return plainUint
	}
	return plainOther
}

// plainPrefix is how the member of this field begins in its object, or empty where encoding/json does more than to write
// the field's name.
func plainPrefix(field reflect.StructField) string {
	name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
	if name == "" || name == "-" || options != "" || field.Anonymous || !field.IsExported() {
		return ""
	}
	for i := range len(name) {
		if c := name[i]; !plainByte(c) || c == '\'' || c == '`' || c == 0x7f { // encoding/json takes no such name
			return ""
		}
	}
	return `"` + name + `":`
}

// plainByte holds for bytes that stand for themselves in a JSON string, also in those that encoding/json writes.
func plainByte(c byte) bool {
	return c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&'
}

// decodePlain fills the arguments, or reports false where they do not come in the plain form; some may be filled then.
func (s *argsShape) decodePlain(data []byte, args reflect.Value) bool {
	if !s.plain || len(data) < 2 || data[0] != '{' {
		return false
	}
	rest := data[1:]
	for i := range s.params {
		p := &s.params[i]
		if i > 0 {
			if len(rest) == 0 || rest[0] != ',' {
				return false
			}
			rest = rest[1:]
		}
		if len(rest) < len(p.prefix) || string(rest[:len(p.prefix)]) != p.prefix {
			return false
		}
		rest = rest[len(p.prefix):]
		n := p.plainValue(rest, args.Field(i))
		if n == 0 {
			return false
		}
		rest = rest[n:]
	}
	return len(rest) == 1 && rest[0] == '}'
}

// plainValue sets a field to the value that data begins with and returns its length, or 0.
func (p *param) plainValue(data []byte, field reflect.Value) int {
	switch p.kind {
	case plainString, plainText:
		text, n := quotedText(data)
		switch {
		case n == 0:
		case p.kind == plainString:
			field.SetString(string(text))
			return n
		case field.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText(text) == nil:
			return n
		}
	case plainBool:
		for _, literal := range [...]string{"true", "false"} {
			if len(data) > len(literal) && string(data[:len(literal)]) == literal {
				field.SetBool(literal == "true")
				return len(literal)
			}
		}
	case plainInt, plainUint:
		n := plainNumber(data)
		if n == 0 {
			return 0
		}
		if p.kind == plainInt {
			if v, err := strconv.ParseInt(string(data[:n]), 10, 64); err == nil && !field.OverflowInt(v) {
				field.SetInt(v)
				return n
			}
		} else if v, err := strconv.ParseUint(string(data[:n]), 10, 64); err == nil && !field.OverflowUint(v) {
			field.SetUint(v)
			return n
		}
	case plainOther:
		n := skipValue(data, 0)
		if n == 0 || data[0] == 'n' {
			return 0
		}
		if json.Unmarshal(data[:n], field.Addr().Interface()) == nil {
			return n
		}
	}
	return 0
}

// quotedText reads a quoted text that needs no unescaping, and returns its whole length; 0 where there is none.
func quotedText(data []byte) (text []byte, n int) {
	if len(data) == 0 || data[0] != '"' {
		return nil, 0
	}
	ascii := true
	for i := 1; i < len(data); i++ {
		switch c := data[i]; {
		case c == '"':
			text = data[1:i:i]
			if !ascii && !utf8.Valid(text) {
				return nil, 0
			}
			return text, i + 1
		case c == '\\' || c < ' ':
			return nil, 0
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return nil, 0
}

// plainNumber is the length of the whole number that data begins with; 0 where there is none in JSON's form.
func plainNumber(data []byte) int {
	n := 0
	if n < len(data) && data[n] == '-' {
		n++
	}
	first := n
	for n < len(data) && data[n] >= '0' && data[n] <= '9' {
		n++
	}
	if n == first || data[first] == '0' && n > first+1 || n == len(data) || data[n] != ',' && data[n] != '}' {
		return 0
	}
	return n
}
