package smallage

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// argsShape is what a job's arguments must hold before they may reach a handler: every parameter that is not optional,
// and no null where the Go type has none. encoding/json alone would fill both with zero values.
type argsShape struct {
	params []param
	plain  bool // decodePlain may be tried
}

type param struct {
	name     string
	optional bool
	nullable bool

	prefix string // of its member, in the plain form
	kind   plainKind
}

func newArgsShape(args reflect.Type, optional []string) argsShape {
	shape := argsShape{plain: !reflect.PointerTo(args).Implements(jsonUnmarshaler) && !reflect.PointerTo(args).Implements(textUnmarshaler)}
	for i := range args.NumField() {
		field := args.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" {
			name = field.Name
		}
		p := param{
			name: name, optional: slices.Contains(optional, name), nullable: nullable(field.Type),
			prefix: plainPrefix(field), kind: plainKindOf(field.Type),
		}
		shape.plain = shape.plain && p.prefix != ""
		shape.params = append(shape.params, p)
	}
	return shape
}

var jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()

func nullable(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface:
		return true
	default:
		return reflect.PointerTo(t).Implements(jsonUnmarshaler)
	}
}

// decode fills args, a pointer to the task's argument struct.
func (s *argsShape) decode(data []byte, args any) error {
	if s.plain {
		fields := reflect.ValueOf(args).Elem()
		if s.decodePlain(data, fields) {
			return nil
		}
		fields.SetZero()
	}
	if err := json.Unmarshal(data, args); err != nil {
		var mismatch *json.UnmarshalTypeError
		if errors.As(err, &mismatch) && mismatch.Field != "" {
			return fmt.Errorf("argument %q is a JSON %s, the handler takes a %s", mismatch.Field, mismatch.Value, mismatch.Type)
		}
		return fmt.Errorf("arguments: %w", err)
	}
	if len(s.params) == 0 {
		return nil
	}
	var few [16]bool // seldom more parameters; spares the allocation
	seen := few[:]
	if len(s.params) > len(few) {
		seen = make([]bool, len(s.params))
	}
	for key, value := range topLevel(data) {
		for i := range s.params {
			if p := &s.params[i]; p.name == string(key) {
				if !p.nullable && value[0] == 'n' {
					return fmt.Errorf("argument %q is null, the handler takes a value", p.name)
				}
				seen[i] = true
			}
		}
	}
	for i := range s.params {
		if p := &s.params[i]; !seen[i] && !p.optional {
			return fmt.Errorf("argument %q is missing; a parameter that older jobs lack must be named in the directive's optional=", p.name)
		}
	}
	return nil
}

// topLevel yields the members of a JSON object that is known to be valid: the key without its quotes, and the text that
// begins with the member's value.
func topLevel(data []byte) func(yield func(key, value []byte) bool) {
	return func(yield func(key, value []byte) bool) {
		i := skipSpace(data, 0)
		if i >= len(data) || data[i] != '{' {
			return // null, which json.Unmarshal takes for an empty struct
		}
		i = skipSpace(data, i+1)
		for i < len(data) && data[i] == '"' {
			end := skipString(data, i)
			key := data[i+1 : end-1]
			if slices.Contains(key, '\\') {
				var plain string
				if json.Unmarshal(data[i:end], &plain) == nil {
					key = []byte(plain)
				}
			}
			i = skipSpace(data, skipSpace(data, end)+1) // past the colon
			if !yield(key, data[i:]) {
				return
			}
			i = skipSpace(data, skipValue(data, i))
			if i >= len(data) || data[i] != ',' {
				return
			}
			i = skipSpace(data, i+1)
		}
	}
}

func skipSpace(data []byte, i int) int {
	for i < len(data) && (data[i] == ' ' || data[i] == '\n' || data[i] == '\t' || data[i] == '\r') {
		i++
	}
	return i
}

// skipString returns the index after the string that begins at i.
func skipString(data []byte, i int) int {
	for i++; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(data)
}

// skipValue returns the index after the value that begins at i.
func skipValue(data []byte, i int) int {
	depth := 0
	for i < len(data) {
		switch data[i] {
		case '"':
			i = skipString(data, i)
			if depth == 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i // the enclosing object ends: the value was a number or a literal
			}
			depth--
			if depth == 0 {
				return i + 1
			}
		case ',':
			if depth == 0 {
				return i
			}
		}
		i++
	}
	return i
}
