package smallage

import (
	"context"
	"encoding"
	"errors"
	"reflect"
	"slices"
	"time"
)

// Table is what one package's generated Dispatch returns: its tasks with their handlers and settings. The zero Table is
// empty and refused by NewWorker. A Table is not changed by its use and may be given to several workers.
type Table struct {
	entries []Entry
	needs   []need
}

type need struct {
	name  string
	value any
}

// Entry is one task with its handler, made by Handle, HandleValue or HandleBinary. The zero Entry is refused.
type Entry struct {
	name     string
	aliases  []string
	queue    string
	attempts int
	backoff  time.Duration
	longest  time.Duration
	timeout  time.Duration
	dedupTTL time.Duration
	prepare  func(args []byte) (call, error)
}

// call runs a handler on arguments that were already decoded.
type call func(ctx context.Context) ([]byte, error)

// NewTable joins the entries of one package.
func NewTable(entries ...Entry) Table { return Table{entries: entries} }

// Needs returns the table with one more dependency that NewWorker refuses where it is nil, by the name that Dispatch
// gives it.
func (t Table) Needs(name string, dependency any) Table {
	t.needs = append(slices.Clip(t.needs), need{name, dependency})
	return t
}

// Handle ties a task to a handler without a value.
func Handle[A any](t *Task[A], handler func(context.Context, A) error) Entry {
	return HandleValue(t, func(ctx context.Context, args A) ([]byte, error) { return nil, handler(ctx, args) })
}

// HandleValue ties a task to a handler whose value is bytes.
func HandleValue[A any](t *Task[A], handler func(context.Context, A) ([]byte, error)) Entry {
	e := Entry{
		name: t.Name, aliases: t.Aliases, queue: t.Queue, attempts: t.Attempts,
		backoff: t.Backoff, longest: t.BackoffMax, timeout: t.Timeout, dedupTTL: t.DedupTTL,
	}
	if e.queue == "" {
		e.queue = DefaultQueue
	}
	if e.attempts == 0 {
		e.attempts = defaultAttempts
	}
	if e.backoff == 0 {
		e.backoff = defaultBackoff
	}
	if e.longest == 0 {
		e.longest = max(defaultBackoffMax, e.backoff)
	}
	shape := newArgsShape(reflect.TypeFor[A](), t.Optional)
	e.prepare = func(data []byte) (call, error) {
		var args A
		if err := shape.decode(data, &args); err != nil {
			return nil, err
		}
		return func(ctx context.Context) ([]byte, error) { return handler(ctx, args) }, nil
	}
	return e
}

// HandleBinary ties a task to a handler whose value brings its own encoding. A value that cannot be encoded makes the
// outcome failed with ReasonValue; the handler is not run again for it.
func HandleBinary[A any, T encoding.BinaryMarshaler](t *Task[A], handler func(context.Context, A) (T, error)) Entry {
	return HandleValue(t, func(ctx context.Context, args A) ([]byte, error) {
		value, err := handler(ctx, args)
		if err != nil {
			return nil, err
		}
		return marshalValue(value)
	})
}

// valueError says that a handler succeeded but its value cannot be kept.
type valueError struct{ err error }

func (e *valueError) Error() string {
	return "the handler succeeded, but its value cannot be encoded: " + e.err.Error()
}
func (e *valueError) Unwrap() error { return e.err }

func marshalValue(value encoding.BinaryMarshaler) (data []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			data, err = nil, &valueError{errors.New("MarshalBinary panicked: " + panicText(p))}
		}
	}()
	if isNil(value) {
		return nil, &valueError{errors.New("it is nil")}
	}
	data, err = value.MarshalBinary()
	if err != nil {
		return nil, &valueError{err}
	}
	return data, nil
}

// isNil holds for nil interfaces and for interfaces that hold a nil pointer, map, channel or function.
func isNil(v any) bool {
	if v == nil {
		return true
	}
	switch rv := reflect.ValueOf(v); rv.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Chan, reflect.Func, reflect.UnsafePointer:
		return rv.IsNil()
	default:
		return false
	}
}
