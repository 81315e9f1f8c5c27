package smallage

import (
	"context"
	"encoding/json"
	"time"
)

// Enqueuer takes jobs. A Client is one, a CollectingEnqueuer is one for tests, and applications may write their own:
// handlers that enqueue take one by inject=, so that a test can see what they enqueued.
type Enqueuer interface {
	// Enqueue accepts one job and returns its id. The id is valid beside ErrUnconfirmed, and zero beside any other error.
	Enqueue(ctx context.Context, job Job) (JobID, error)
}

// EnqueueFunc makes a function an Enqueuer.
type EnqueueFunc func(ctx context.Context, job Job) (JobID, error)

// Enqueue calls f.
func (f EnqueueFunc) Enqueue(ctx context.Context, job Job) (JobID, error) { return f(ctx, job) }

// Job is what the generated wrappers hand to an Enqueuer. Applications seldom make one themselves.
type Job struct {
	// ID is set only where the caller brought it (option ID); enqueuing is then idempotent within the queue.
	// The zero id lets the Enqueuer choose.
	ID JobID

	// Task is the task's name on the wire.
	Task string

	// Queue is the queue's name: letters, digits, '.', '_' and '-'.
	Queue string

	// Args is one JSON object, keyed by parameter name.
	Args json.RawMessage

	// Dedup is the dedup key, up to 4096 bytes; empty means that the job is not deduplicated.
	Dedup string

	// ResultTTL is how long the outcome is kept once there is one, at least a millisecond; 0 means that none is kept.
	ResultTTL time.Duration

	// Delay is how long the job waits before it is due; 0 and less mean now.
	Delay time.Duration

	// At is when the job is due; the zero time and times past mean now. At most one of Delay and At is set.
	At time.Time

	// ExpiresIn drops the job where it has not started this long after it was due; 0 means never.
	ExpiresIn time.Duration

	// Headers travel with the job through retries, takeover and replay (trace ids, tenants). They are text.
	Headers map[string]string
}

// MaxDedupKeyBytes is the longest dedup key.
const MaxDedupKeyBytes = 4096

// DefaultQueue is the queue of tasks that name none.
const DefaultQueue = "default"

// check is what every Enqueuer of this package refuses, so that a unit test finds what production would.
func (j *Job) check() error {
	if !json.Valid(j.Args) {
		return j.badArgs()
	}
	return j.checkEncoded()
}

func (j *Job) badArgs() error {
	return invalidf("arguments of task %s: want one JSON object keyed by parameter name", j.Task)
}

// checkEncoded is check for a job whose arguments are known to be JSON: to read them again costs more than all else that
// is done with a job before it is sent.
func (j *Job) checkEncoded() error {
	switch {
	case j.Task == "":
		return invalidf("job: no task name; enqueue through a generated wrapper")
	case !validName(j.Queue):
		return invalidf("queue name %q for task %s: use letters, digits, '.', '_' and '-', at least one", shorten(j.Queue), j.Task)
	case len(j.Dedup) > MaxDedupKeyBytes:
		return invalidf("dedup key of %d bytes for task %s: at most %d; use a digest of long values", len(j.Dedup), j.Task, MaxDedupKeyBytes)
	case j.ResultTTL < 0 || j.ResultTTL > 0 && j.ResultTTL < time.Millisecond:
		return invalidf("ResultTTL %v for task %s: use at least 1ms, or leave it out to keep no outcome", j.ResultTTL, j.Task)
	case j.ExpiresIn < 0 || j.ExpiresIn > 0 && j.ExpiresIn < time.Millisecond:
		return invalidf("ExpiresIn %v for task %s: use at least 1ms, or leave it out for a job that never expires", j.ExpiresIn, j.Task)
	case j.Delay != 0 && !j.At.IsZero():
		return invalidf("options of task %s: Delay and At exclude each other; keep one", j.Task)
	case firstByte(j.Args) != '{':
		return j.badArgs()
	}
	return nil
}

// sameBytes holds for two views of the very same memory.
func sameBytes(a, b []byte) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

func firstByte(b []byte) byte {
	for _, c := range b {
		switch c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// validName holds for queues, namespaces and worker names: they become parts of Redis keys, where a brace would move
// the key to another hash slot.
func validName(s string) bool {
	if s == "" || len(s) > 200 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}
