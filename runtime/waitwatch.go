package smallage

import (
	"context"
	"errors"
	"sync"
	"time"
)

// waits are all the waits of one client. Each job that somebody waits for is watched once, however many wait for it: its
// look, its notice and its outcome are shared. One lock guards everything here, in lanes and in what they hold; nothing
// blocks under it.
type waits struct {
	client  *Client
	ctx     context.Context // ends with close
	stop    context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	watches map[JobID]*watch
	lanes   map[string]*waitLane // by the master's address; one named "" where there is no cluster
	keeping bool                 // the next housekeeping is planned
}

// watch is one job that somebody waits for.
type watch struct {
	id      JobID
	key     string // of its outcome
	token   string
	channel string
	waiters map[*waiter]int // the how manieth each of them was
	joined  int             // how many there have been
	lane    *waitLane       // nil until its master is known

	queued bool      // a look is due or under way
	lazy   bool      // that look can wait for others
	sent   bool      // that look is under way
	again  bool      // something happened since it was sent: look once more
	epoch  int       // looks sent before are of no account
	seen   bool      // a look has found that there is no outcome yet
	looked time.Time // when the last look was answered or, before the first, when the watch began

	how     hearing
	told    int        // a notice may be taken for the truth by so many of the first waiters; see found
	deaf    bool       // its token has failed it: it is told by notices alone
	blocked *tokenConn // while it blocks on its token

	over    bool  // it has ended: by an outcome, an error, or because nobody waits any more
	err     error // why, where it was an error
	trouble error // the last look's error
}

// hearing is how a watch learns of its outcome.
type hearing uint8

const (
	hearsNothing hearing = iota // is looked at first
	hearsToken                  // blocks on the token, on a connection of its own
	hearsNotices                // is in the wanted list of its lane's notices
)

// waiter is one call of Wait, WaitAll or WaitAny.
type waiter struct {
	ready   chan told // how they ended; there is room for all
	watches []*watch  // in the order of the ids
}

// told is what a waiter is told of one job.
type told struct {
	res Result
	err error
}

const (
	// lookAgain is how long a lost notice may go unseen.
	lookAgain = 5 * time.Second

	// lookAgainDeaf is the same for a watch that nobody could tell: there is no subscription.
	lookAgainDeaf = time.Second

	// lingering is how long connections of waits stay open when nobody uses them.
	lingering = 2 * time.Second

	housekeeping = 500 * time.Millisecond
)

var errClosed = errors.New("smallage: the client is closed; keep it open for as long as anybody waits")

func newWaits(c *Client) *waits {
	w := &waits{client: c, watches: map[JobID]*watch{}, lanes: map[string]*waitLane{}}
	w.ctx, w.stop = context.WithCancel(context.Background())
	return w
}

// join begins to wait for jobs; no id is twice in the list.
func (w *waits) join(ids []JobID) *waiter {
	me := &waiter{ready: make(chan told, len(ids)), watches: make([]*watch, len(ids))}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, id := range ids {
		if w.closed {
			me.watches[i] = &watch{id: id, over: true}
			me.ready <- told{err: errClosed}
			continue
		}
		v := w.watches[id]
		if v == nil {
			key, token, channel := w.client.keys.outcome(id)
			v = &watch{
				id: id, key: key, token: token, channel: channel,
				waiters: make(map[*waiter]int, 1), joined: 1, looked: time.Now(),
			}
			w.watches[id] = v
			w.place(v)
		} else {
			v.joined++
			if v.lane != nil {
				v.lane.look(v) // whoever comes later must not depend on what those before were told
			}
		}
		v.waiters[me] = v.joined
		me.watches[i] = v
	}
	w.keepHouse()
	return me
}

// leave ends a wait. The last to leave ends the watch.
func (w *waits) leave(me *waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, v := range me.watches {
		delete(v.waiters, me)
		if len(v.waiters) == 0 && !v.over {
			w.end(v)
		}
	}
}

// trouble is why one of the waiter's watches has no answer; nil where Redis answered that there is no outcome.
func (w *waits) trouble(me *waiter) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, v := range me.watches {
		_, waits := v.waiters[me]
		switch {
		case !waits:
		case v.trouble != nil:
			return v.trouble
		case !v.seen:
			return errUnanswered
		}
	}
	return nil
}

var errUnanswered = errors.New("smallage: the first look is still under way")

// found tells an outcome to those who waited when it was asked for, the first joined. It may have been cleared since,
// before others came: for them it is looked for anew.
func (w *waits) found(v *watch, res Result, joined int) {
	for me, n := range v.waiters {
		if n <= joined {
			delete(v.waiters, me)
			me.ready <- told{res: res}
		}
	}
	switch {
	case len(v.waiters) == 0:
		w.end(v)
	case v.lane != nil:
		v.lane.look(v)
	}
}

// end stops watching. Whoever still waits is told the watch's error.
func (w *waits) end(v *watch) {
	v.over = true
	delete(w.watches, v.id)
	w.unhear(v)
	for me := range v.waiters {
		me.ready <- told{err: v.err}
	}
	clear(v.waiters)
}

// unhear takes a watch off its token or its notices.
func (w *waits) unhear(v *watch) {
	switch v.how {
	case hearsToken:
		v.blocked.interrupt()
	case hearsNotices:
		v.lane.notices.drop(v)
	case hearsNothing:
	}
	v.how, v.blocked = hearsNothing, nil
}

// place finds the lane of a watch and has it look. On a cluster the slot's master may have to be asked for first.
func (w *waits) place(v *watch) {
	if cluster := w.cluster(); cluster == nil {
		w.enter(v, "", w.client.rdb)
	} else {
		v.lane = nil
		v.epoch++ // what looks find that are under way must not tie it to the lane that it leaves
		w.running.Go(func() { w.placeOnCluster(v) })
	}
}

// keepHouse plans the next housekeeping, unless it is planned or nothing is left to keep.
func (w *waits) keepHouse() {
	if w.keeping || w.closed || len(w.watches) == 0 && !w.lingers() {
		return
	}
	w.keeping = true
	time.AfterFunc(housekeeping, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.keeping = false
		if w.closed {
			return
		}
		now := time.Now()
		for _, v := range w.watches {
			w.lookAtLength(v, now)
		}
		for _, l := range w.lanes {
			l.tokens.closeIdle(now)
			l.notices.closeIdle(now)
		}
		w.keepHouse()
	})
}

// lookAtLength has a watch look that was not told anything for long, on whatever master its slot is now.
func (w *waits) lookAtLength(v *watch, now time.Time) {
	every := lookAgain
	if v.how == hearsNotices && !v.lane.notices.heard(v) {
		every = lookAgainDeaf
	}
	if v.lane == nil || v.queued || now.Sub(v.looked) < every {
		return
	}
	if w.moved(v) {
		w.unhear(v)
		w.place(v)
		return
	}
	v.lane.lookLazily(v)
}

func (w *waits) lingers() bool {
	for _, l := range w.lanes {
		if len(l.tokens.idle) > 0 || l.notices.running {
			return true
		}
	}
	return false
}

// close ends all waits with an error, and their connections.
func (w *waits) close() error {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return nil
	}
	w.closed = true
	for _, v := range w.watches {
		v.err = errClosed
		w.end(v)
	}
	for _, l := range w.lanes {
		l.tokens.closeIdle(time.Time{})
	}
	w.mu.Unlock()
	w.stop()
	ended := make(chan struct{})
	go func() {
		w.running.Wait()
		close(ended)
	}()
	waitFor(ended, closeLimit) // a look at a server that does not answer ends with go-redis's own timeouts
	return nil
}

const closeLimit = time.Second
