package smallage

import (
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// notices tells the watches of a lane their outcomes, over one subscription however many they are. The key is the truth
// and a notice only saves a look, so a lost one costs no more than the time to the next look.
type notices struct {
	lane    *waitLane
	wanted  map[string]*watch // by channel
	running bool
	unused  time.Time     // since when nothing is wanted
	current *subscription // nil where no connection listens

	plain bool // the server knows no sharded channels, or this user may not use them
	apart bool // channels of different slots must not be in one command
}

func (n *notices) init() { n.wanted = map[string]*watch{} }

// want has a watch told, and looked at as soon as that is certain.
func (n *notices) want(v *watch) {
	n.wanted[v.channel] = v
	if n.current != nil {
		n.current.join(v)
	}
	if w := n.lane.waits; !n.running && !w.closed {
		n.running = true
		w.running.Go(n.run)
	}
}

func (n *notices) drop(v *watch) {
	delete(n.wanted, v.channel)
	if n.current != nil {
		n.current.part(v)
	}
	n.unused = time.Now()
}

// heard holds for a watch whose notice cannot be missed as things stand.
func (n *notices) heard(v *watch) bool { return n.current != nil && n.current.channels[v.channel] }

// closeIdle ends a subscription that nobody has used for a while, and unsubscribes from what nobody wants any more.
func (n *notices) closeIdle(now time.Time) {
	switch s := n.current; {
	case s == nil:
	case len(n.wanted) == 0 && now.Sub(n.unused) >= lingering:
		s.quit()
	case len(s.drop) > 0:
		s.wake()
	}
}

// run keeps a subscription up for as long as somebody wants one.
func (n *notices) run() {
	w := n.lane.waits
	failures := 0
	for {
		w.mu.Lock()
		if w.closed || len(n.wanted) == 0 {
			n.running = false
			w.mu.Unlock()
			return
		}
		s := newSubscription(n)
		n.current = s
		for _, v := range n.wanted {
			s.join(v)
		}
		w.mu.Unlock()

		err := s.run()

		w.mu.Lock()
		n.current = nil
		if s.confirmed {
			failures = 0
		}
		failures++
		again := n.learn(err)
		w.mu.Unlock()
		switch {
		case err == nil || again:
		case redis.HasErrorPrefix(err, "NOPERM"):
			sleep(w.ctx, retryDenied)
		default:
			if cluster := w.cluster(); cluster != nil {
				cluster.ReloadState(w.ctx)
			}
			sleep(w.ctx, backoff(50*time.Millisecond, time.Second, failures))
			n.placeAnew()
		}
	}
}

// retryDenied is how long a user that may not subscribe is left to the slow looks.
const retryDenied = 10 * time.Second

// learn draws what there is to learn from a refusal, and reports whether the next try will differ from the last.
func (n *notices) learn(err error) bool {
	var refusal redis.Error
	if !errors.As(err, &refusal) {
		return false
	}
	switch {
	case !n.plain && (strings.Contains(refusal.Error(), "unknown command") || redis.HasErrorPrefix(err, "NOPERM")):
		n.plain = true
		return true
	case !n.apart && redis.HasErrorPrefix(err, "CROSSSLOT"):
		n.apart = true
		return true
	}
	n.plain = false // the server may be another one next time
	return false
}

// placeAnew finds the masters of all that is wanted anew: on a cluster the slots may have moved.
func (n *notices) placeAnew() {
	w := n.lane.waits
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cluster() == nil || w.closed {
		return
	}
	for _, v := range n.wanted {
		w.unhear(v)
		w.place(v)
	}
}
