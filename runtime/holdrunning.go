package smallage

import (
	"context"
	"time"
)

// What becomes of jobs in the hold while their handlers run: lost leases, cancels, the end of the worker.

// lose marks an entry that this worker no longer holds; an unstarted one is dropped, a running one's context is cancelled.
func (h *hold) lose(q *queueState, entry string) *delivery {
	h.mu.Lock()
	d := q.entries[entry]
	if d == nil || d.ending.Load() || d.lost.Swap(true) {
		h.mu.Unlock()
		return nil
	}
	unstarted := false
	for i, p := range q.pending {
		if p == d {
			q.pending = append(q.pending[:i:i], q.pending[i+1:]...)
			unstarted = true
			break
		}
	}
	if d.job != nil {
		d.job.end(ErrLeaseLost)
	}
	h.mu.Unlock()
	if unstarted {
		h.drop(d)
	}
	return d
}

// started gives the hold the means to cancel a running handler.
func (h *hold) started(d *delivery, ctx context.Context, job *jobContext) {
	h.mu.Lock()
	defer h.mu.Unlock()
	d.ctx, d.job = ctx, job
	if h.ended != nil {
		job.end(h.ended)
	}
	if d.lost.Load() {
		job.end(ErrLeaseLost)
	}
}

// endAll ends the contexts of all running handlers, and of any that may still start.
func (h *hold) endAll(cause error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = cause
	for _, q := range h.queues {
		for _, d := range q.entries {
			if d.job != nil {
				d.job.end(cause)
			}
		}
	}
}

// gone holds once all contexts were ended.
func (h *hold) gone() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ended != nil
}

func (h *hold) returned(d *delivery) {
	h.mu.Lock()
	defer h.mu.Unlock()
	d.ctx, d.job = nil, nil
}

// stuck lists running jobs that go on although their context has ended, each once.
func (h *hold) stuck() []*delivery {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []*delivery
	for _, q := range h.queues {
		for _, d := range q.entries {
			if d.ctx == nil || d.ctx.Err() == nil || d.stuck {
				continue
			}
			if !d.overdue { // it may be about to return
				d.overdue = true
				continue
			}
			d.stuck = true
			list = append(list, d)
		}
	}
	return list
}

// noteCancelled cancels a job of q that runs, and remembers one that may still come up.
func (h *hold) noteCancelled(q *queueState, id JobID, score string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	q.newestMark = score
	now := time.Now()
	if len(q.marked) > 1000 {
		for known, until := range q.marked {
			if until.Before(now) {
				delete(q.marked, known)
			}
		}
	}
	q.marked[id] = now.Add(cancelMarkTTL)
	for _, d := range q.entries {
		if d.env.id == id && d.job != nil {
			d.job.end(ErrCancelled)
		}
	}
}

func (h *hold) newestMark(q *queueState) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return q.newestMark
}

func (h *hold) maybeCancelled(d *delivery) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, marked := d.queue.marked[d.env.id]
	return marked
}

func (h *hold) notCancelled(d *delivery) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(d.queue.marked, d.env.id)
}

// abandon marks what still runs: whatever those handlers return is ignored.
func (h *hold) abandon() []*delivery {
	h.mu.Lock()
	defer h.mu.Unlock()
	var running []*delivery
	for _, q := range h.queues {
		for _, d := range q.entries {
			if d.job != nil {
				d.dropped.Store(true)
				running = append(running, d)
			}
		}
	}
	return running
}
