package smallage

import (
	"errors"
	"strconv"
	"strings"
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

// mayFlush holds where a flush may begin: at once where none is under way. Beside another it is worth its round trip only
// for a good part of what the worker runs; fewer go as soon as the other is over.
func (x *endings) mayFlush() bool {
	n := len(x.waiting)
	return n > 0 && (x.flushing == 0 || x.flushing < flushesOfEndings && n >= max(4, x.s.cfg.Concurrency/3))
}

// idle waits until every ending that was begun is finished, or run has stopped.
func (x *endings) idle() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for x.open > 0 && !x.closed {
		x.settled.Wait()
	}
}

// run flushes until stop is closed. What is not finished then stays pending in Redis.
func (x *endings) run(stop <-chan struct{}) {
	var flushers sync.WaitGroup
	for range flushesOfEndings {
		flushers.Go(x.flushAlways)
	}
	<-stop
	x.mu.Lock()
	x.closed = true
	x.due.Broadcast()
	x.settled.Broadcast()
	x.mu.Unlock()
	flushers.Wait()
}

func (x *endings) flushAlways() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for {
		for !x.closed && !x.mayFlush() {
			x.due.Wait()
		}
		if x.closed {
			return
		}
		batch := x.waiting
		x.waiting = nil
		x.flushing++
		x.mu.Unlock()
		over := x.s.hold.flush()
		x.flush(batch)
		over()
		x.mu.Lock()
		x.flushing--
	}
}

// flush sends the current step of each ending and moves each on by its reply.
func (x *endings) flush(batch []*ending) {
	var calls []*scriptCall
	var acks []queueAcks
	var few [2]int // most batches are acknowledges alone
	spans := few[:1]
	for _, e := range batch {
		if e.step == stepAck {
			if e.d != nil {
				e.d.ending.Store(true)
			}
			acks = addAck(acks, e)
			continue
		}
		calls = append(calls, x.calls(e)...)
		spans = append(spans, len(calls))
	}
	for i := range acks {
		acks[i].call = x.ackCall(acks[i].queue, acks[i].list)
		calls = append(calls, acks[i].call)
	}
	stepPoint("before", batch)
	runScripts(x.s.base, x.s.rdb, calls)
	stepPoint("after", batch)

	over, again := make([]*ending, 0, len(batch)), make([]*ending, 0, len(spans)-1)
	for _, e := range batch {
		if e.step == stepAck {
			continue
		}
		own := calls[spans[0]:spans[1]]
		spans = spans[1:]
		if err := firstError(own); err != nil {
			x.stepFailed(e, err)
			continue
		}
		e.tries = 0
		x.advance(e, own)
		if e.step == stepOver {
			over = append(over, e)
		} else {
			again = append(again, e)
		}
	}
	for _, a := range acks {
		if a.call.err != nil {
			for _, e := range a.list {
				x.stepFailed(e, a.call.err)
			}
			continue
		}
		x.acknowledged(a.list, replyList(a.call.reply))
		over = append(over, a.list...)
	}
	x.finish(over, again)
}

// queueAcks are a flush's acknowledges in one queue.
type queueAcks struct {
	queue *queueState
	list  []*ending
	call  *scriptCall
}

func addAck(acks []queueAcks, e *ending) []queueAcks {
	for i := range acks {
		if acks[i].queue == e.queue {
			acks[i].list = append(acks[i].list, e)
			return acks
		}
	}
	return append(acks, queueAcks{queue: e.queue, list: []*ending{e}})
}

func (x *endings) acknowledged(list []*ending, stale []any) {
	for _, id := range stale {
		for _, e := range list {
			if e.d != nil && e.entry == replyText(id) {
				x.s.stale(e.d)
			}
		}
	}
}

// finish lets go of what is over and queues what has further steps.
func (x *endings) finish(over, again []*ending) {
	held := make([]*delivery, 0, len(over))
	for _, e := range over {
		if e.d != nil {
			held = append(held, e.d)
		}
	}
	if len(held) > 0 {
		x.s.hold.drop(held...)
		x.s.outage.worked()
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.add(again...)
	if x.open -= len(over); x.open == 0 {
		x.settled.Broadcast()
	}
}

// stepFailed tries the step again later; it is the same step, and never the handler.
func (x *endings) stepFailed(e *ending, err error) {
	x.s.outage.failed(err)
	e.tries++
	time.AfterFunc(backoff(50*time.Millisecond, 2*time.Second, e.tries), func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.add(e)
	})
}

func firstError(calls []*scriptCall) error {
	for _, c := range calls {
		if c.err != nil {
			return c.err
		}
	}
	return nil
}

func (x *endings) ackCall(q *queueState, list []*ending) *scriptCall {
	first, last := list[0].entry, list[0].entry
	args := make([]any, 3, len(list)+3)
	for _, e := range list {
		if compareEntries(e.entry, first) < 0 {
			first = e.entry
		} else if compareEntries(e.entry, last) > 0 {
			last = e.entry
		}
		args = append(args, e.entry)
	}
	args[0], args[1], args[2] = x.s.consumer, first, last
	return newCall(ackScript, []string{q.keys.stream}, args...)
}

// compareEntries orders stream entry ids, <ms>-<serial>.
func compareEntries(a, b string) int {
	aTime, aSerial, _ := strings.Cut(a, "-")
	bTime, bSerial, _ := strings.Cut(b, "-")
	if d := compareDigits(aTime, bTime); d != 0 {
		return d
	}
	return compareDigits(aSerial, bSerial)
}

// compareDigits orders decimal numbers without leading zeros.
func compareDigits(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

func isNilReply(err error) bool { return errors.Is(err, redis.Nil) }
