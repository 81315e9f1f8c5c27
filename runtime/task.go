package smallage

import (
	"bytes"
	"context"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"time"
)

// GeneratedV1 is named by every generated file, so that a file made for a newer runtime does not compile with this one.
const GeneratedV1 = 1

// Task is what generated code knows of one task without its handler. The type parameter is the struct of its
// arguments. Fields are what the directive says; a zero field means the default. It must not be changed once in use.
type Task[A any] struct {
	Name    string   // on the wire; required
	Aliases []string // older names that the handler also serves

	// Applied when enqueuing.
	Queue     string         // default DefaultQueue
	DedupKey  func(A) string // nil: not deduplicated unless asked for
	ResultTTL time.Duration  // 0: no outcome unless asked for
	ExpiresIn time.Duration  // 0: never

	// Applied by the worker.
	Attempts   int           // runs in total; 0: 3
	Backoff    time.Duration // before the second attempt, doubling; 0: 1 s
	BackoffMax time.Duration // the longest delay between attempts; 0: 5 min
	Timeout    time.Duration // of one run; 0: none
	DedupTTL   time.Duration // 0: WorkerConfig.DedupTTL
	Optional   []string      // parameters that a job may lack
}

// Enqueue encodes the arguments, applies the directive's defaults and then the options, and hands the job to q.
// It returns an error that matches ErrInvalid where an argument cannot be encoded or an option cannot be, else q's.
func (t *Task[A]) Enqueue(ctx context.Context, q Enqueuer, args A, opts []Option[A]) (JobID, error) {
	if isNil(q) {
		return JobID{}, invalidf("Enqueuer for task %s: it is nil; pass a *smallage.Client or, in tests, a *smallage.CollectingEnqueuer", t.Name)
	}
	encoded, err := encodeArgs(t.Name, args)
	if err != nil {
		return JobID{}, err
	}
	job := Job{Task: t.Name, Queue: t.Queue, Args: encoded, ResultTTL: t.ResultTTL, ExpiresIn: t.ExpiresIn}
	if job.Queue == "" {
		job.Queue = DefaultQueue
	}
	if t.DedupKey != nil {
		if job.Dedup, err = t.dedupKey(args); err != nil {
			return JobID{}, err
		}
	}
	if err := apply(&job, opts); err != nil {
		return JobID{}, err
	}
	if q, ok := q.(interface {
		enqueueEncoded(context.Context, Job) (JobID, error)
	}); ok {
		return q.enqueueEncoded(ctx, job)
	}
	return q.Enqueue(ctx, job)
}

func encodeArgs[A any](task string, args A) (json.RawMessage, error) {
	encoded := argsWriterOf(reflect.TypeFor[A]()).write(reflect.ValueOf(&args).Elem())
	if encoded == nil {
		var err error
		if encoded, err = json.Marshal(&args); err != nil { // by its address, so that methods with pointer receivers are found
			return nil, fmt.Errorf("%w arguments of task %s: %w", ErrInvalid, task, err)
		}
	}
	if replacedText(encoded) {
		return nil, invalidf("arguments of task %s: a string is not valid UTF-8, which JSON would change; pass bytes as []byte", task)
	}
	return encoded, nil
}

// replacedText reports whether encoding/json has put the escape \ufffd for bytes that were not UTF-8. The character
// itself it writes as it is, and a backslash of the caller's is doubled.
func replacedText(encoded []byte) bool {
	for rest := encoded; ; {
		i := bytes.Index(rest, []byte(`\ufffd`))
		if i < 0 {
			return false
		}
		backslashes := 1
		for j := i - 1; j >= 0 && rest[j] == '\\'; j-- {
			backslashes++
		}
		if backslashes%2 == 1 {
			return true
		}
		rest = rest[i+1:]
	}
}

// DecodeArgs reads the arguments of a collected job back into the task's argument struct, as the worker would. A job of
// another task, whose arguments have other names or types, is an error that matches ErrInvalid.
func DecodeArgs[A any](job Job) (A, error) {
	var args A
	shape := newArgsShape(reflect.TypeFor[A](), nil)
	if err := shape.decode(job.Args, &args); err != nil {
		return args, fmt.Errorf("%w arguments of task %s: %w", ErrInvalid, job.Task, err)
	}
	return args, nil
}

// Lookup looks once for the value of a job of this task. Errors: ErrNoResult, ErrWrongTask, ErrValueLost, a *JobError
// for every ending but ok, or what r returned.
func (t *Task[A]) Lookup(ctx context.Context, r Results, id JobID) ([]byte, error) {
	if isNil(r) {
		return nil, invalidf("Results for task %s: it is nil; pass a *smallage.Client", t.Name)
	}
	res, err := r.Result(ctx, id)
	return t.value(id, res, err)
}

// Wait waits for the value of a job of this task. A timeout of 0 or less looks once. Errors as for Lookup.
func (t *Task[A]) Wait(ctx context.Context, r Results, id JobID, timeout time.Duration) ([]byte, error) {
	if isNil(r) {
		return nil, invalidf("Results for task %s: it is nil; pass a *smallage.Client", t.Name)
	}
	res, err := r.Wait(ctx, id, timeout)
	return t.value(id, res, err)
}

func (t *Task[A]) value(id JobID, res Result, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	if !t.serves(res.Task) {
		return nil, fmt.Errorf("%w: job %s is of task %s, asked for as %s", ErrWrongTask, id, res.Task, t.Name)
	}
	if err := res.Err(); err != nil {
		return nil, err
	}
	if res.valueLost {
		return nil, fmt.Errorf("job %s (%s): %w", id, t.Name, ErrValueLost)
	}
	return res.Value, nil
}

func (t *Task[A]) serves(name string) bool {
	if name == t.Name {
		return true
	}
	for _, alias := range t.Aliases {
		if name == alias {
			return true
		}
	}
	return false
}

// BinaryValue is a pointer to a type that reads its own encoding.
type BinaryValue[T any] interface {
	*T
	encoding.BinaryUnmarshaler
}

// LookupAs is Lookup for a task whose value brings its own encoding: T is what UnmarshalBinary fills.
func LookupAs[T any, P BinaryValue[T], A any](ctx context.Context, t *Task[A], r Results, id JobID) (value T, err error) {
	data, err := t.Lookup(ctx, r, id)
	if err == nil {
		err = decodeValue(t.Name, id, data, P(&value))
	}
	return value, err
}

// LookupPointer is LookupAs for a task that returns a pointer; it is nil beside an error.
func LookupPointer[T any, P BinaryValue[T], A any](ctx context.Context, t *Task[A], r Results, id JobID) (*T, error) {
	data, err := t.Lookup(ctx, r, id)
	if err != nil {
		return nil, err
	}
	value := new(T)
	if err := decodeValue(t.Name, id, data, P(value)); err != nil {
		return nil, err
	}
	return value, nil
}

// WaitAs is Wait for a task whose value brings its own encoding: T is what UnmarshalBinary fills.
func WaitAs[T any, P BinaryValue[T], A any](ctx context.Context, t *Task[A], r Results, id JobID, timeout time.Duration) (value T, err error) {
	data, err := t.Wait(ctx, r, id, timeout)
	if err == nil {
		err = decodeValue(t.Name, id, data, P(&value))
	}
	return value, err
}

// WaitPointer is WaitAs for a task that returns a pointer; it is nil beside an error.
func WaitPointer[T any, P BinaryValue[T], A any](ctx context.Context, t *Task[A], r Results, id JobID, timeout time.Duration) (*T, error) {
	data, err := t.Wait(ctx, r, id, timeout)
	if err != nil {
		return nil, err
	}
	value := new(T)
	if err := decodeValue(t.Name, id, data, P(value)); err != nil {
		return nil, err
	}
	return value, nil
}

func decodeValue(task string, id JobID, data []byte, value encoding.BinaryUnmarshaler) error {
	if err := value.UnmarshalBinary(data); err != nil {
		return fmt.Errorf("smallage: decode the value of job %s (%s) as %T: %w", id, task, value, err)
	}
	return nil
}
