package smallage

import (
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

// endings carries out how jobs end. Each ending goes through steps, each a script that may be sent again; a step's
// reply is read before the next is sent. All endings at hand share one flush, and a flush never waits for more.
type endings struct {
	s *session

	mu       sync.Mutex
	due      sync.Cond // something may be flushed, or the endings are closed
	settled  sync.Cond // nothing is open any more, or the endings are closed
	waiting  []*ending
	flushing int // flushes under way
	open     int // begun and not finished
	closed   bool
}

// flushesOfEndings is how many flushes may be under way at once: Redis works on one while the worker looks at the replies
// to the other.
const flushesOfEndings = 2

// step is where an ending stands.
type step uint8

const (
	stepDone    step = iota // mark the dedup key done and, on a single server, write the outcome in the same flush
	stepOutcome             // write the outcome
	stepAck                 // acknowledge and delete
	stepExtend              // let the claim outlive the delay before the next attempt
	stepRetry               // move to the delayed set
	stepVerdict             // record the verdict and renew the lease
	stepUnclaim             // release the dedup claim
	stepFinish              // bury where the job is dead, acknowledge, delete, drop the verdict
	stepOver
)

// ending is one entry on its way out.
type ending struct {
	d     *delivery // nil for an entry without a job
	queue *queueState
	entry string
	step  step
	after step // where to go on after a verdict was recorded anew
	tries int

	status  Status // of the outcome
	value   []byte
	lost    bool // the value is lost
	v       *verdict
	err     error
	delay   time.Duration // -1: an unknown task
	history string
}

func newEndings(s *session) *endings {
	x := &endings{s: s}
	x.due.L, x.settled.L = &x.mu, &x.mu
	return x
}

func newDeathID() string { return uuid.NewString() }

// done ends a job whose handler returned nil. unkept says why its value cannot be stored, where it cannot.
func (x *endings) done(d *delivery, value []byte, unkept string) {
	e := &d.success
	*e = ending{d: d, queue: d.queue, entry: d.entry, status: StatusOK, value: value}
	if unkept == "" && d.env.resultTTL > 0 && len(value) > x.s.cfg.MaxValueBytes {
		unkept = "the handler succeeded, but its value of " + strconv.Itoa(len(value)) + " bytes exceeds WorkerConfig.MaxValueBytes, " +
			strconv.Itoa(x.s.cfg.MaxValueBytes) + "; store it elsewhere and return where"
	}
	if unkept != "" {
		e.status, e.value = StatusFailed, nil
		e.v = &verdict{Status: StatusFailed, Reason: ReasonValue, Error: unkept, Runs: d.env.attempt}
	}
	switch {
	case d.env.dedup != "":
		e.step = stepDone
	case d.env.resultTTL > 0:
		e.step = stepOutcome
	default:
		e.step = stepAck
	}
	x.submit(e)
}

// already ends the copy of a job that is done: its outcome stays, or is completed where its worker died before writing.
func (x *endings) already(d *delivery) {
	x.submit(x.asDone(&ending{d: d, queue: d.queue, entry: d.entry}))
}

// asDone turns an ending into that of a job that is done already.
func (x *endings) asDone(e *ending) *ending {
	x.s.observe(Event{Kind: EventSkipped, Job: e.d.info(), Key: e.d.env.dedup, Owner: e.d.env.id})
	e.status, e.lost, e.step = StatusOK, true, stepAck
	if e.d.env.resultTTL > 0 {
		e.step = stepOutcome
	}
	return e
}

// retry puts a job into the delayed set for its next attempt.
func (x *endings) retry(d *delivery, delay time.Duration, history string) {
	e := &ending{d: d, queue: d.queue, entry: d.entry, delay: delay, history: history, step: stepRetry}
	if d.claimed.Load() {
		e.step = stepExtend
	}
	x.submit(e)
}

// putBack delays a job whose task is unknown here: another worker, or the next version, may know it. The claim that an
// earlier attempt may have left outlives the delay.
func (x *endings) putBack(d *delivery) {
	e := &ending{d: d, queue: d.queue, entry: d.entry, delay: -1, step: stepRetry}
	if d.env.dedup != "" && !d.env.id.IsZero() {
		e.step = stepExtend
	}
	x.submit(e)
}

// end records a verdict and carries it out.
func (x *endings) end(d *delivery, v *verdict, err error) {
	x.submit(&ending{d: d, queue: d.queue, entry: d.entry, v: v, err: err, status: v.Status, step: stepVerdict})
}

// resume carries out a verdict that is recorded already.
func (x *endings) resume(d *delivery, v *verdict) {
	e := &ending{d: d, queue: d.queue, entry: d.entry, v: v, status: v.Status, step: stepVerdict}
	e.next()
	x.submit(e)
}

// acknowledge ends an entry without a job.
func (x *endings) acknowledge(q *queueState, entry string) {
	x.submit(&ending{queue: q, entry: entry, step: stepAck})
}

func (x *endings) submit(e *ending) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.open++
	x.add(e)
}

// add queues endings for the next flush.
func (x *endings) add(list ...*ending) {
	x.waiting = append(x.waiting, list...)
	if x.mayFlush() {
		x.due.Signal()
	}
}

// mayFlush holds where a flush may begin: at once where none is under way. Beside another it must be worth its round trip;
// fewer endings go as soon as the other is over.
func (x *endings) mayFlush() bool {
	n := len(x.waiting)
	return n > 0 && (x.flushing == 0 || x.flushing < flushesOfEndings && n >= x.worthwhile())
}

// worthwhile is how many endings are a good part of what the worker runs.
func (x *endings) worthwhile() int { return max(4, x.s.cfg.Concurrency/3) }

// idle waits until every ending that was begun is finished, or run has stopped.
func (x *endings) idle() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for x.open > 0 && !x.closed {
		x.settled.Wait()
	}
}

func isNilReply(err error) bool { return errors.Is(err, redis.Nil) }
