package smallage

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"pgregory.net/rapid"
)

// modelWorker is a real session without its goroutines: the model reads, ticks, starts jobs and flushes endings.
type modelWorker struct {
	world   *world
	s       *session
	q       *queueState
	entered chan *modelRun
	runs    []*modelRun // handlers that have not returned
}

// modelRun is a handler that was called.
type modelRun struct {
	worker  *modelWorker
	d       *delivery
	job     JobID
	value   string // what it returns, another in each run
	answer  chan error
	back    chan struct{} // closed once the worker has settled what the handler returned
	guarded bool          // the key keeps other jobs from running beside it
}

func (m *modelWorker) intercept(Handler) Handler {
	return func(_ context.Context, job JobInfo) ([]byte, error) {
		r := &modelRun{worker: m, job: job.ID, value: "run " + strconv.Itoa(int(m.world.serial.Add(1))), answer: make(chan error)}
		m.entered <- r
		if err := <-r.answer; err != nil {
			return nil, err
		}
		return []byte(r.value), nil
	}
}

// start lets the worker take up its next job, up to the call of the handler or what it does instead.
func (m *modelWorker) start(t *rapid.T) {
	w := m.world
	d := m.s.hold.next()
	before := len(m.s.endings.waiting)
	back := make(chan struct{})
	go func() {
		defer close(back)
		m.s.process(d)
	}()
	select {
	case r := <-m.entered:
		r.d, r.back = d, back
		w.note("  handler of %s called", w.name(r.job))
		w.follow()
		w.look(t)
		w.entered(t, r)
		m.runs = append(m.runs, r)
	case <-back:
		w.follow()
		var e *ending
		if waiting := m.s.endings.waiting; len(waiting) > before {
			e = waiting[len(waiting)-1]
			w.note("  instead: ending %q at step %d", e.status, e.step)
		}
		w.decided(t, d, e)
	}
}

// finish lets a handler return.
func (m *modelWorker) finish(r *modelRun, err error) {
	m.runs = slices.DeleteFunc(m.runs, func(other *modelRun) bool { return other == r })
	if err == nil {
		m.world.jobs[r.job].succeeded = true
	}
	r.answer <- err
	<-r.back
	m.world.follow()
}

// flush carries out one step of one ending.
func (m *modelWorker) flush(t *rapid.T, i int) {
	w, x := m.world, m.s.endings
	e := x.waiting[i]
	x.waiting = slices.Delete(x.waiting, i, i+1)
	before, stale := w.now, e.d != nil && w.now.holders[e.entry] != m.s.consumer
	var id JobID
	if e.d != nil {
		id = e.d.env.id
	}
	w.note("  %s, step %d, stale %v, twice %v", w.name(id), e.step, stale, w.wire.twice)
	x.flush([]*ending{e})
	w.follow()
	if !stale {
		return
	}
	w.look(t)
	queue := w.now.queue
	for entry, holder := range w.now.holders {
		if before.holders[entry] == "" && holder == m.s.consumer { // what the flush has read on
			queue = strings.Replace(queue, entry+" "+holder+" "+w.now.counts[entry]+"\n", "", 1)
		}
	}
	if queue != before.queue {
		w.fail(t, "%s no longer holds the entry of %s, and changed the queue from\n%s", m.s.consumer, w.name(id), before.queue)
	}
	if now := w.now.outcomes[id].status; now != before.outcomes[id].status && now != StatusOK {
		w.fail(t, "%s no longer holds the entry of %s, and changed its outcome from %q to %q", m.s.consumer, w.name(id), before.outcomes[id].status, now)
	}
}

// crash ends the worker: nothing of it reaches Redis any more.
func (m *modelWorker) crash() {
	m.world.active = slices.DeleteFunc(m.world.active, func(other *modelWorker) bool { return other == m })
}

// leave is an orderly shutdown: unstarted jobs go back, running ones are cancelled or given up, and the consumer goes.
func (m *modelWorker) leave(t *rapid.T, heed, settle bool) {
	m.s.handBack(m.s.hold.closeUnstarted())
	m.world.check(t)
	if heed {
		m.s.hold.endAll(ErrShutdown)
		for len(m.runs) > 0 {
			m.finish(m.runs[0], errors.New("shutdown"))
			m.world.check(t)
		}
	}
	for settle && len(m.s.endings.waiting) > 0 {
		m.flush(t, 0)
		m.world.check(t)
	}
	m.s.hold.abandon()
	m.s.leave()
	m.crash()
}

// bury lets the handlers of a worker that is gone return, so that no goroutine is left.
func (m *modelWorker) bury() {
	for _, r := range m.runs {
		m.s.hold.abandon()
		r.answer <- errors.New("the worker is gone")
		<-r.back
	}
	m.runs = nil
}

// expire lets the lease of an entry run out, for Redis and for the worker that holds it.
func (w *world) expire(t *rapid.T, entry string) {
	ctx, holder := context.Background(), w.now.holders[entry]
	err := w.rdb.Do(ctx, "XCLAIM", w.k.stream, group, holder, 0, entry, "IDLE", (2 * modelLease).Milliseconds(),
		"RETRYCOUNT", w.now.counts[entry], "JUSTID").Err()
	if err != nil {
		t.Fatalf("let a lease run out: %v", err)
	}
	for _, m := range w.active {
		if d := m.q.entries[entry]; d != nil && m.s.consumer == holder {
			d.renewed.Store(since(time.Now()) - int64(2*modelLease))
			for _, r := range m.runs {
				if r.d == d {
					r.guarded = false
				}
			}
		}
	}
}

// readSome reads up to n new entries, as the worker's reader does. There are some, so the read does not block.
func (m *modelWorker) readSome(n int, busy bool) {
	m.s.hold.mu.Lock()
	m.s.hold.reserved += n
	m.q.reserved += n
	m.s.hold.mu.Unlock()
	if _, err := m.s.readNew(m.q, n, busy); err != nil {
		m.s.readFailed(m.q, err)
	}
}
