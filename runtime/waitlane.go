package smallage

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"
)

// waitLane is the part of the waits that one master answers: the only server, or one of a cluster's, so that a master that is
// away does not hold up the waits of the others.
type waitLane struct {
	waits *waits
	addr  string
	rdb   redis.UniversalClient // the master

	due      []*watch // to be looked at now
	lazily   []*watch // to be looked at when nothing is due
	flushes  int      // looks under way
	paused   bool     // the last look failed; the next is planned
	failures int      // in a row

	tokens  tokens
	notices notices
}

const (
	looksAtOnce  = 100 // results read in one flush
	flushesAlong = 2   // a slow flush does not hold up the next
)

// enter puts a watch into the lane of its master.
func (w *waits) enter(v *watch, addr string, master redis.UniversalClient) {
	l := w.lanes[addr]
	if l == nil {
		l = &waitLane{waits: w, addr: addr}
		l.tokens.lane, l.notices.lane = l, l
		l.notices.init()
		w.lanes[addr] = l
	}
	l.rdb = master
	v.lane, v.queued, v.lazy, v.sent, v.again = l, false, false, false, false
	v.epoch++
	l.look(v)
	if l.alone(v) && !l.tokens.free() && l.notices.current != nil {
		v.how = hearsNotices // at the same time, which spares a round trip
		l.notices.want(v)
	}
}

// alone holds for a watch that no other is looked at with. In a crowd many may have their outcomes already, and
// subscribing for them would be in vain.
func (l *waitLane) alone(v *watch) bool { return len(l.due) == 1 && l.due[0] == v }

// look has the watch's outcome looked up in the next flush.
func (l *waitLane) look(v *watch) {
	switch {
	case v.over:
	case v.sent:
		v.again = true
	case !v.queued, v.lazy:
		v.queued, v.lazy = true, false
		l.due = append(l.due, v)
		l.start()
	}
}

// lookLazily does the same where nobody has a reason to expect anything: it holds up no other look.
func (l *waitLane) lookLazily(v *watch) {
	if !v.over && !v.queued {
		v.queued, v.lazy = true, true
		l.lazily = append(l.lazily, v)
		l.start()
	}
}

func (l *waitLane) start() {
	if l.paused || l.flushes >= flushesAlong || len(l.due)+len(l.lazily) == 0 || l.waits.closed {
		return
	}
	l.flushes++
	l.waits.running.Go(l.flush)
}

// flush looks at what is due until nothing is.
func (l *waitLane) flush() {
	w := l.waits
	w.mu.Lock()
	defer w.mu.Unlock()
	defer func() { l.flushes-- }()
	for !l.paused && len(l.due)+len(l.lazily) > 0 && w.ctx.Err() == nil {
		sent := l.next()
		if len(sent) == 0 {
			continue
		}
		ids, asked := make([]JobID, len(sent)), make([]sentLook, len(sent))
		for i, v := range sent {
			ids[i], asked[i] = v.id, sentLook{v.epoch, v.joined}
		}
		w.mu.Unlock()
		results, errs := w.client.lookUp(w.ctx, ids)
		point("wait-looked")
		w.mu.Lock()
		var failed []*watch
		answers := 0
		for i, v := range sent {
			if errs[i] == nil {
				answers++
			}
			if l.answered(v, asked[i], results[i], errs[i]) {
				failed = append(failed, v)
			}
		}
		l.lookLater(failed, answers > 0)
	}
}

// next takes the watches of the next flush: what is due before what can wait.
func (l *waitLane) next() []*watch {
	var batch []*watch
	lazy := len(l.due) == 0
	list := &l.due
	if lazy {
		list = &l.lazily
	}
	n := min(len(*list), looksAtOnce)
	for _, v := range (*list)[:n] {
		if !v.over && v.lane == l && v.queued && !v.sent && v.lazy == lazy { // else it has moved on since
			v.sent = true
			batch = append(batch, v)
		}
	}
	*list = (*list)[n:]
	return batch
}

// lookLater plans the next look of watches whose look has failed: all of them together where nothing was answered, and
// by housekeeping where only they failed, so that they hold up nobody else.
func (l *waitLane) lookLater(failed []*watch, someWorked bool) {
	if someWorked {
		l.failures = 0
		for _, v := range failed {
			v.looked = time.Now().Add(lookAgainDeaf - lookAgain)
		}
		return
	}
	for _, v := range failed {
		v.queued = true
		l.due = append(l.due, v)
	}
	l.pause()
}

// sentLook is what held for a watch when its look was sent.
type sentLook struct{ epoch, joined int }

// answered takes in what a look has found, and reports whether the watch must be looked at once more because it failed.
func (l *waitLane) answered(v *watch, sent sentLook, res Result, err error) bool {
	if v.over || v.epoch != sent.epoch && res.Missing() {
		return false
	}
	v.queued, v.sent, v.lazy = false, false, false
	again := v.again
	v.again = false
	v.trouble = err
	switch {
	case refused(err):
		v.err = err
		l.waits.end(v)
	case err != nil:
		return true
	case !res.Missing():
		l.waits.found(v, res, sent.joined)
	default:
		v.looked, v.seen = lookedNow(), true
		if v.how == hearsNothing {
			l.hear(v)
		} else if again {
			l.look(v)
		}
	}
	return false
}

// lookedNow is now, or a little earlier at random: watches that began together shall not look again together.
func lookedNow() time.Time { return time.Now().Add(-rand.N(lookAgain / 3)) }

// hear has a watch be told of its outcome from now on. It is looked at once more as soon as that is certain.
func (l *waitLane) hear(v *watch) {
	if !v.deaf {
		if conn := l.tokens.take(); conn != nil {
			v.how, v.blocked = hearsToken, conn
			l.waits.running.Go(func() { l.tokens.block(v, conn) })
			return
		}
	}
	v.how = hearsNotices
	l.notices.want(v)
}

// pause plans the next try after a look at which nothing was answered.
func (l *waitLane) pause() {
	l.failures++
	l.paused = true
	time.AfterFunc(backoff(50*time.Millisecond, time.Second, l.failures), func() {
		l.waits.mu.Lock()
		defer l.waits.mu.Unlock()
		l.paused = false
		l.start()
	})
}

// cluster returns the client as a cluster's, or nil.
func (w *waits) cluster() *redis.ClusterClient {
	cluster, _ := w.client.rdb.(*redis.ClusterClient)
	return cluster
}

var errNoMaster = errors.New("smallage: the cluster has no master for the job's slot")

// placeOnCluster asks for the master of the watch's slot until there is one.
func (w *waits) placeOnCluster(v *watch) {
	for failures := 1; ; failures++ {
		master, err := w.cluster().MasterForKey(w.ctx, v.token)
		if err == nil && master == nil {
			err = errNoMaster
		}
		w.mu.Lock()
		if v.over || w.closed {
			w.mu.Unlock()
			return
		}
		if err == nil {
			w.enter(v, master.Options().Addr, master)
			w.mu.Unlock()
			return
		}
		v.trouble = err
		w.mu.Unlock()
		w.cluster().ReloadState(w.ctx)
		sleep(w.ctx, backoff(50*time.Millisecond, time.Second, failures))
	}
}

// moved holds for a watch whose slot another master serves now, by what the cluster client knows.
func (w *waits) moved(v *watch) bool {
	cluster := w.cluster()
	if cluster == nil {
		return false
	}
	master, err := cluster.MasterForKey(w.ctx, v.token)
	return err == nil && master != nil && master.Options().Addr != v.lane.addr
}

// sleep waits unless ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
