package smallage

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// Handler runs one attempt of one job and returns its value. Middleware wraps it; the innermost one calls the
// application's function with the decoded arguments.
type Handler func(ctx context.Context, job JobInfo) ([]byte, error)

// Bury wraps an error so that the job is dead at once, with ReasonBuried, whatever attempts are left. Bury(nil) is nil.
func Bury(err error) error {
	if err == nil {
		return nil
	}
	return &buryError{err}
}

type buryError struct{ err error }

func (e *buryError) Error() string { return e.err.Error() }
func (e *buryError) Unwrap() error { return e.err }

// RetryAfter wraps an error so that the next attempt, where one is left, follows after d instead of the task's backoff.
// It counts as an attempt. d of 0 and less means at once; RetryAfter(d, nil) is nil.
func RetryAfter(d time.Duration, err error) error {
	if err == nil {
		return nil
	}
	return &retryError{max(d, 0), err}
}

type retryError struct {
	delay time.Duration
	err   error
}

func (e *retryError) Error() string { return e.err.Error() }
func (e *retryError) Unwrap() error { return e.err }

// panicError is a panic or Goexit of a handler, as the error of its attempt.
type panicError struct {
	text  string
	stack string
}

func (e *panicError) Error() string { return e.text }

func newPanicError(value any) *panicError {
	return &panicError{"panic: " + panicText(value), string(debug.Stack())}
}

var errGoexit = errors.New("the handler called runtime.Goexit (in a test: FailNow or SkipNow)")

func panicText(p any) (text string) {
	defer func() { // the value's own Error or String may panic
		if recover() != nil {
			text = fmt.Sprintf("%T", p)
		}
	}()
	return fmt.Sprint(p)
}

// readable returns an error whose text can be had: that of a nil pointer in an error interface panics.
func readable(err error) (same error) {
	if err == nil {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			same = fmt.Errorf("the handler returned a %T whose Error method panics: %s", err, panicText(p))
		}
	}()
	_ = err.Error()
	return err
}

// InfoFromContext returns what a handler's context knows of its job, and false for any other context.
func InfoFromContext(ctx context.Context) (JobInfo, bool) {
	info, ok := ctx.Value(infoKey{}).(JobInfo)
	return info, ok
}

type (
	infoKey struct{}
	callKey struct{}
)
