package smallage

import (
	"sync"
	"sync/atomic"
	"time"
)

// hold is what a worker has in hand: entries read and not yet ended. It decides how many more may be read, and which
// job starts next.
type hold struct {
	mu       sync.Mutex
	ready    sync.Cond // a job may start, or the hold is closed
	queues   []*queueState
	strict   bool
	slots    int // handlers at once
	limit    int // entries at once
	held     int
	reserved int   // of the limit, for replies to come
	covered  int   // of the reserved, by entries that are acknowledged before the read
	flushing int   // flushes of endings under way, which will make room
	waiting  int   // runners without a job
	waking   bool  // one of them was told to look, and has not yet
	suspects int   // suspects in hand, or about to be taken
	closed   bool  // no further job starts
	ended    error // the cause with which all handlers' contexts were ended

	wanted  *queueState // a suspect of this queue waits in Redis for a runner; see soughtSuspect
	keeping bool        // a runner waits for it
}

// queueState is one queue's part of the hold. Fields are guarded by hold.mu but for channels and atomics.
type queueState struct {
	name     string
	keys     *queueKeys
	weight   int
	harmless int // an entry that was delivered more often is a suspect
	credit   int // of the smooth weighted round robin
	pending  []*delivery
	reserved int // of the pending ones, for replies to come
	entries  map[string]*delivery
	dry      bool // the last read brought less than was asked for

	marked     map[JobID]time.Time // cancelled by id, as far as this worker knows, and until when that is of interest
	newestMark string              // score of the newest cancel mark seen

	roomy  chan struct{} // tells the waiting reader to look again
	kick   chan struct{} // asks for a tick now
	paused atomic.Bool
	more   atomic.Bool // handed-back entries wait for room: they come before new ones

	clock        atomic.Int64 // Redis's, less the process's time, in ns
	acknowledged atomic.Bool  // the last acknowledge went through
	entrySize    atomic.Int64 // of an entry in the last reply to a read, in bytes

	// strayed is when a read or a tick last failed, in ns since the process's start: its reply may have brought entries
	// that this consumer now holds without knowing. 0: never, or looked for since. Negative: one cannot tell, so look always.
	strayed atomic.Int64
}

func newHold(w *Worker) *hold {
	h := &hold{strict: w.cfg.StrictPriority, slots: w.cfg.Concurrency, limit: 2*w.cfg.Concurrency + len(w.queues)}
	h.ready.L = &h.mu
	for _, name := range w.queues {
		q := &queueState{
			harmless: w.cfg.harmlessDeliveries(), name: name, keys: w.keys.queue(name), weight: w.cfg.Queues[name], dry: true,
			entries: map[string]*delivery{}, marked: map[JobID]time.Time{}, newestMark: "-inf",
			roomy: make(chan struct{}, 1), kick: make(chan struct{}, 1),
		}
		q.more.Store(true) // nothing is read before the first tick has looked
		h.queues = append(h.queues, q)
	}
	return h
}

// reserve sets room aside for entries to be read from q, and returns how many; add gives it back. Every queue may always
// hold one unstarted entry, so that a full one does not keep another from being seen; beyond that, queues that have more
// waiting share by weight or order. A reader that may block for long takes only a part, so that other queues, and
// entries to be taken over, find some.
func (h *hold) reserve(q *queueState, mayBlock bool) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || h.wanted == q {
		return 0
	}
	room := h.room(q, h.free())
	if room < len(q.pending) || h.flushing > 0 && !q.dry && room < h.slots/3 {
		return 0 // there is enough to go on with, or soon more room: one read of many costs less than many reads
	}
	if mayBlock && room > 1 {
		room = max(1, room/(2*len(h.queues)))
	} else if room > 2 {
		room-- // for an entry to be taken over
	}
	h.setAside(q, room)
	return room
}

// reserveBehind sets room aside for a read right behind the acknowledge of some entries of q, where it is known to have
// more. It returns how many may be read, and how many of them take the place of acknowledged ones; flushed and add give
// them back. A read of few would cost more than it saves. One of more than half the limit would leave too little for the
// flush beside this one: worker and Redis would take turns.
func (h *hold) reserveBehind(q *queueState, acked int) (room, covered int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || h.wanted == q || q.dry {
		return 0, 0
	}
	free := h.free() + acked
	room = h.room(q, free)
	if len(h.queues) == 1 { // no other needs the runners that have nothing to do
		room = min(h.slots+1+h.waiting-len(q.pending)-q.reserved, free)
	}
	if room = min(room, h.slots); room < max(1, h.slots/3) {
		return 0, 0
	}
	if room > 2 {
		room-- // for an entry to be taken over
	}
	covered = min(room, acked)
	h.setAside(q, room)
	h.covered += covered
	return room, covered
}

func (h *hold) setAside(q *queueState, room int) {
	h.reserved += room
	q.reserved += room
}

// free is how many entries more the worker may hold.
func (h *hold) free() int { return h.limit - h.held - h.reserved + h.covered }

// reserveRest sets aside whatever room there is, for entries to be taken over.
func (h *hold) reserveRest(q *queueState) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return 0
	}
	room := h.room(q, h.free())
	if room == 0 && h.wanted == q && h.free() > 0 {
		room = 1 // the place that the kept runner leaves free
	}
	h.setAside(q, room)
	return room
}

// room keeps a place for every queue whose jobs do not wait here, whatever runs: of the limit of twice the slots and one
// per queue, runners take up as many as there are slots, and so do jobs that wait behind their queue's first.
func (h *hold) room(q *queueState, free int) int {
	share, total, behind := h.slots, q.weight, 0
	for _, other := range h.queues {
		behind += max(0, len(other.pending)+other.reserved-1)
		if other != q && !other.dry {
			total += other.weight
			if h.strict && other.weight > q.weight {
				share = 0
			}
		}
	}
	if share > 0 {
		share = max(1, share*q.weight/total)
	}
	unstarted := len(q.pending) + q.reserved
	room := min(share+1-unstarted, h.slots-behind, free)
	if unstarted == 0 {
		room = min(share+1, h.slots-behind+1, free)
	}
	return max(0, room)
}

// add takes entries into the hold in exchange for a reservation, and returns those that it did not know.
func (h *hold) add(q *queueState, list []*delivery, reserved int) []*delivery {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reserved -= reserved
	q.reserved -= reserved
	fresh := list[:0]
	for _, d := range list {
		if _, known := q.entries[d.entry]; known {
			continue // its reply came after a renewal had found it
		}
		q.entries[d.entry] = d
		h.held++
		if d.suspect() {
			h.suspects++
			q.pending = append([]*delivery{d}, q.pending...)
		} else {
			q.pending = append(q.pending, d)
		}
		fresh = append(fresh, d)
	}
	if len(fresh) > 0 {
		h.wake()
	}
	return fresh
}

// drop takes ended or lost entries out of the hold.
func (h *hold) drop(list ...*delivery) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dropAll(list)
}

// flushBegins notes that a flush of endings is under way.
func (h *hold) flushBegins() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.flushing++
}

// flushed notes that a flush is over, and drops the entries that it ended. covered is what reserveBehind returned for it.
func (h *hold) flushed(ended []*delivery, covered int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.flushing--
	h.covered -= covered
	h.dropAll(ended)
}

func (h *hold) dropAll(list []*delivery) {
	for _, d := range list {
		if d.queue.entries[d.entry] != d {
			continue
		}
		delete(d.queue.entries, d.entry)
		h.held--
		if d.suspect() {
			h.suspects--
			d.queue.tickSoon() // there may be more of them, one at a time
		}
	}
	for _, q := range h.queues {
		h.tell(q)
	}
}

// wasDry notes whether a read brought less than was asked for.
func (h *hold) wasDry(q *queueState, dry bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if q.dry != dry && h.strict {
		h.ready.Broadcast() // a lighter queue's jobs may start now
	}
	q.dry = dry
}

// probe holds where the next read must not block, since lighter queues' jobs wait for what it brings.
func (h *hold) probe(q *queueState) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.strict && !q.dry
}

// tickSoon asks for a tick without waiting for its time.
func (q *queueState) tickSoon() {
	select {
	case q.kick <- struct{}{}:
	default:
	}
}

func (h *hold) tell(q *queueState) {
	select {
	case q.roomy <- struct{}{}:
	default:
	}
}

// inHand lists a queue's entries.
func (h *hold) inHand(q *queueState) []*delivery {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := make([]*delivery, 0, len(q.entries))
	for _, d := range q.entries {
		list = append(list, d)
	}
	return list
}

func (h *hold) isClosed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closed
}

// closeUnstarted lets no further job start and returns what has not.
func (h *hold) closeUnstarted() map[*queueState][]*delivery {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	h.ready.Broadcast()
	unstarted := map[*queueState][]*delivery{}
	for _, q := range h.queues {
		if len(q.pending) > 0 {
			unstarted[q], q.pending = q.pending, nil
		}
	}
	return unstarted
}
