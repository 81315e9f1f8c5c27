package smallage

import (
	"strings"
	"sync"
	"time"
)

// How endings are sent: whatever steps are at hand share one flush.

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
		batch := x.take()
		x.flushing++
		x.mu.Unlock()
		x.flush(batch)
		x.mu.Lock()
		x.flushing--
	}
}

// take returns what goes with the next flush: all endings at hand. Of more than half of what a worker holds, half is left
// for the flush beside it, or else worker and Redis would take turns from then on.
func (x *endings) take() []*ending {
	batch := x.waiting
	x.waiting = nil
	if n := len(batch); x.flushing == 0 && n > x.s.cfg.Concurrency && n/2 >= x.worthwhile() {
		x.waiting = append(x.waiting, batch[n/2:]...)
		batch = batch[:n/2]
		x.due.Signal()
	}
	return batch
}

// flush sends the current step of each ending and moves each on by its reply.
func (x *endings) flush(batch []*ending) {
	x.s.hold.flushBegins()
	calls := make([]*scriptCall, 0, len(batch)+1)
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
		calls = x.addCalls(calls, e)
		spans = append(spans, len(calls))
	}
	for i := range acks {
		acks[i].call = x.ackCall(acks[i].queue, acks[i].list)
		calls = append(calls, acks[i].call)
	}
	stepPoint("before", batch)
	reads, behind := x.s.readsBehind(acks)
	runScripts(x.s.base, x.s.rdb, calls, behind...)
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
		a.queue.acknowledged.Store(a.call.err == nil)
		if a.call.err != nil {
			for _, e := range a.list {
				x.stepFailed(e, a.call.err)
			}
			continue
		}
		x.acknowledged(a.list, replyList(a.call.reply))
		over = append(over, a.list...)
	}
	x.finish(over, again, reads)
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

// finish lets go of what is over, takes in what was read in its place, and queues what has further steps.
func (x *endings) finish(over, again []*ending, reads []*streamRead) {
	held := make([]*delivery, 0, len(over))
	for _, e := range over {
		if e.d != nil {
			held = append(held, e.d)
		}
	}
	covered := 0
	for _, r := range reads {
		covered += r.covered
	}
	x.s.hold.flushed(held, covered)
	if len(held) > 0 {
		x.s.outage.worked()
	}
	for _, r := range reads {
		x.s.takeIn(r)
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
