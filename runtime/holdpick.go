package smallage

// Which job of the hold starts next, and when a suspect does.

// maySuspect reserves the one place for a suspect, where a runner is free to start it at once.
func (h *hold) maySuspect() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || h.suspects > 0 || h.waiting == 0 {
		return false
	}
	h.suspects++
	return true
}

// soughtSuspect is called after every tick. It lets the kept runner go on, whether the tick brought a suspect or not.
// Where some are left in Redis the next runner that comes free is kept for one: where there is always other work, none
// would ever be free to start it at once.
func (h *hold) soughtSuspect(q *queueState, left bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.wanted == q {
		h.wanted = nil
		h.ready.Broadcast()
	}
	if left && h.wanted == nil && !h.closed && h.suspects == 0 && h.waiting == 0 {
		h.wanted = q
	}
}

// awaitSuspect is the kept runner's wait for the tick that it asks for.
func (h *hold) awaitSuspect() {
	h.keeping = true
	h.waiting++
	h.wanted.tickSoon()
	for h.wanted != nil && !h.closed {
		h.ready.Wait()
		h.waking = false
	}
	h.waiting--
	h.keeping = false
}

// noSuspect gives the reservation back; a suspect that was taken counts by itself.
func (h *hold) noSuspect() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.suspects--
}

// wake lets one runner look for a job, who wakes the next where there is more than one: where jobs are short, a few
// runners work off what many would only quarrel for. A kept runner would lose what it is told, so that then all are.
func (h *hold) wake() {
	switch {
	case h.waiting == 0:
	case h.keeping:
		h.ready.Broadcast()
	case !h.waking:
		h.waking = true
		h.ready.Signal()
	}
}

// next waits for a job to start; nil once the hold is closed.
func (h *hold) next() *delivery {
	h.mu.Lock()
	defer h.mu.Unlock()
	for !h.closed {
		if h.wanted != nil && !h.keeping {
			h.awaitSuspect()
			continue
		}
		if q := h.pick(); q != nil {
			d := q.pending[0]
			q.pending[0] = nil
			q.pending = q.pending[1:]
			if 2*len(q.pending) <= h.slots+1 {
				h.tell(q) // its reader may fetch more
			}
			if h.waiting > 0 && h.anyPending() {
				h.wake()
			}
			return d
		}
		h.waiting++
		h.ready.Wait()
		h.waiting--
		h.waking = false
	}
	return nil
}

func (h *hold) anyPending() bool {
	for _, q := range h.queues {
		if len(q.pending) > 0 {
			return true
		}
	}
	return false
}

// pick chooses the queue whose job starts next: a suspect first, then by order or by smooth weighted round robin.
func (h *hold) pick() *queueState {
	for _, q := range h.queues {
		if len(q.pending) > 0 && q.pending[0].suspect() {
			return q
		}
	}
	if h.strict {
		return h.pickHeaviest()
	}
	var best *queueState
	total := 0
	for _, q := range h.queues {
		if len(q.pending) == 0 {
			continue
		}
		q.credit += q.weight
		total += q.weight
		if best == nil || q.credit > best.credit {
			best = q
		}
	}
	if best != nil {
		best.credit -= total
	}
	return best
}

// pickHeaviest lets no job start while a heavier queue is known to have more and a read of it is under way: such reads
// do not block.
func (h *hold) pickHeaviest() *queueState {
	least := 0
	for _, q := range h.queues { // heaviest first
		if len(q.pending) > 0 && q.weight >= least {
			return q
		}
		if !q.dry && q.reserved > 0 {
			least = max(least, q.weight)
		}
	}
	return nil
}
