package smallage

import (
	"encoding"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// KeyText is the text of one value in a dedup key that a directive's template gives: strings as they are, integers in
// decimal, true or false, times in UTC as time.RFC3339Nano, and what MarshalText returns. The bytes of separators and
// '%' are percent-encoded, so that two different lists of values never give one key. Generated code calls it.
//
// It panics where MarshalText fails, because there is no key then and no text may stand in for one. Enqueuing through a
// generated wrapper returns that failure as an error.
func KeyText[T any](value T, separators string) string {
	text := plainKeyText(value)
	if separators == "" || !strings.ContainsAny(text, separators+"%") {
		return text
	}
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(text) {
		if c := text[i]; c == '%' || strings.IndexByte(separators, c) >= 0 {
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
			continue
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

func plainKeyText(value any) string {
	switch value := value.(type) {
	case string:
		return value
	case time.Time:
		return value.UTC().Format(time.RFC3339Nano)
	case encoding.TextMarshaler:
		text, err := value.MarshalText()
		if err != nil {
			panic(keyError{fmt.Errorf("the dedup key needs the text of a %T: %w", value, err)})
		}
		return string(text)
	}
	v := reflect.ValueOf(value)
	switch {
	case v.Kind() == reflect.String:
		return v.String()
	case v.Kind() == reflect.Bool:
		return strconv.FormatBool(v.Bool())
	case v.CanInt():
		return strconv.FormatInt(v.Int(), 10)
	case v.CanUint():
		return strconv.FormatUint(v.Uint(), 10)
	}
	panic(keyError{fmt.Errorf("a %T has no canonical text for a dedup key", value)})
}

// keyError is what KeyText panics with.
type keyError struct{ error }

func (e keyError) Unwrap() error { return e.error }

// dedupKey computes the key of a directive's template, and returns the failure of a value's MarshalText as an error.
func (t *Task[A]) dedupKey(args A) (key string, err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case keyError:
			err = fmt.Errorf("%w arguments of task %s: %w", ErrInvalid, t.Name, p.error)
		default:
			panic(p)
		}
	}()
	return t.DedupKey(args), nil
}
