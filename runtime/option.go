package smallage

import "time"

// Option changes one enqueuing of one task. Options are made by the task's builder (ChargeWith.ResultTTL(…)); the type
// parameter is the task's argument struct, so that an option of another task does not compile.
// The zero Option changes nothing. An Option may be used any number of times, concurrently.
type Option[A any] struct {
	_ [0]func(A) // ties the option to its task, also against conversion
	option
}

type option struct {
	kind  optionKind
	span  time.Duration
	time  time.Time
	text  string
	value string
	id    JobID
}

type optionKind uint8

const (
	optNone optionKind = iota
	optResultTTL
	optDedup
	optNoDedup
	optDelay
	optAt
	optQueue
	optExpiresIn
	optHeader
	optID
)

// With makes the options of one task. Its zero value is ready; generated code declares one per task (ChargeWith).
// Of two options of one kind the later wins, but Delay with At and Dedup with NoDedup are refused when enqueuing.
type With[A any] struct {
	_ [0]func(A)
}

// ResultTTL asks for the job's outcome and keeps it this long after it was written, at least a millisecond.
// 0 asks for none, against the directive's result-ttl.
func (With[A]) ResultTTL(d time.Duration) Option[A] {
	return Option[A]{option: option{kind: optResultTTL, span: d}}
}

// Dedup gates the handler by a key: any non-empty byte string up to MaxDedupKeyBytes. Keys are shared by the whole
// namespace, so two tasks that use one key exclude each other: begin it with the task's name.
func (With[A]) Dedup(key string) Option[A] {
	return Option[A]{option: option{kind: optDedup, text: key}}
}

// NoDedup enqueues without the key that the directive's dedup template would give.
func (With[A]) NoDedup() Option[A] { return Option[A]{option: option{kind: optNoDedup}} }

// Delay makes the job due after d, by Redis's clock. 0 and less mean now.
func (With[A]) Delay(d time.Duration) Option[A] {
	return Option[A]{option: option{kind: optDelay, span: d}}
}

// At makes the job due at t, by Redis's clock, to the millisecond. A time past means now; the zero time is refused.
func (With[A]) At(t time.Time) Option[A] { return Option[A]{option: option{kind: optAt, time: t}} }

// Queue sends the job to another queue than the directive's. Some worker must read it.
func (With[A]) Queue(name string) Option[A] {
	return Option[A]{option: option{kind: optQueue, text: name}}
}

// ExpiresIn drops the job, with the outcome expired, where it has not started d after it was due. A job that was lost with
// its worker runs all the same: nobody can tell whether it had started. 0 means never, against
// the directive's expires-in.
func (With[A]) ExpiresIn(d time.Duration) Option[A] {
	return Option[A]{option: option{kind: optExpiresIn, span: d}}
}

// Header attaches a text header that travels with the job. A later value of one key wins.
func (With[A]) Header(key, value string) Option[A] {
	return Option[A]{option: option{kind: optHeader, text: key, value: value}}
}

// ID brings the job's id, made with NewJobID, from the first send on. Enqueuing is then idempotent: within its queue one
// id is accepted once in ClientConfig.IDWindow, and a known id is returned without storing anything.
func (With[A]) ID(id JobID) Option[A] { return Option[A]{option: option{kind: optID, id: id}} }

// apply sets what the options say on a job that already carries the directive's defaults.
func apply[A any](job *Job, opts []Option[A]) error {
	var dedup, noDedup, delay, at bool
	for i := range opts {
		o := &opts[i].option
		switch o.kind {
		case optResultTTL:
			job.ResultTTL = o.span
		case optDedup:
			if o.text == "" {
				return invalidf("dedup key of task %s: it is empty; name what must not repeat, or use NoDedup", job.Task)
			}
			job.Dedup, dedup = o.text, true
		case optNoDedup:
			job.Dedup, noDedup = "", true
		case optDelay:
			job.Delay, delay = o.span, true
		case optAt:
			if o.time.IsZero() {
				return invalidf("time of option At for task %s: it is the zero time; leave the option out to run now", job.Task)
			}
			job.At, at = o.time, true
		case optQueue:
			job.Queue = o.text
		case optExpiresIn:
			job.ExpiresIn = o.span
		case optHeader:
			if o.text == "" {
				return invalidf("header of task %s: its key is empty", job.Task)
			}
			if job.Headers == nil {
				job.Headers = make(map[string]string, 2)
			}
			job.Headers[o.text] = o.value
		case optID:
			if o.id.IsZero() {
				return invalidf("id for task %s: it is the zero JobID; make one with NewJobID, or leave the option out", job.Task)
			}
			job.ID = o.id
		case optNone:
		}
	}
	if dedup && noDedup {
		return invalidf("options of task %s: Dedup and NoDedup exclude each other; keep one", job.Task)
	}
	if delay && at {
		return invalidf("options of task %s: Delay and At exclude each other; keep one", job.Task)
	}
	return nil
}
