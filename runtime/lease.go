package smallage

import (
	"math"
	"time"
)

// renewLeases renews the lease of every entry in hand, read ahead or running, for as long as the session lives.
func (s *session) renewLeases(stop <-chan struct{}) {
	ticker := time.NewTicker(s.heartbeat)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
			s.renewAll()
			s.reportStuck()
		}
	}
}

// reportStuck tells of handlers that go on although their context has ended: they keep their slot and lease.
func (s *session) reportStuck() {
	for _, d := range s.hold.stuck() {
		s.log.Warn("smallage: a handler goes on although its context has ended; it keeps its slot until it returns",
			"task", d.env.task, "job", d.env.id, "queue", d.queue.name)
		s.observe(Event{Kind: EventStuck, Job: d.info()})
	}
}

func (s *session) renewAll() {
	var calls []*scriptCall
	var queues []*queueState
	var lists [][]*delivery
	for _, q := range s.hold.queues {
		list := s.hold.inHand(q)
		if len(list) == 0 && q.strayed.Load() == 0 {
			continue // an idle worker sends nothing
		}
		args := []any{s.consumer, (s.cfg.Lease / 2).Milliseconds()}
		for _, d := range list {
			args = append(args, d.entry)
		}
		calls = append(calls, newCall(renewScript, []string{q.keys.stream, q.keys.verdict}, args...))
		queues = append(queues, q)
		lists = append(lists, list)
	}
	point("renewing")
	sent := time.Now()
	runScripts(s.base, s.rdb, calls)
	point("renewed")
	for i, c := range calls {
		if c.err != nil {
			s.outage.failed(c.err)
			continue
		}
		lost := map[string]bool{}
		for _, id := range replyList(replyAt(c.reply, 0)) {
			lost[replyText(id)] = true
		}
		for _, d := range lists[i] {
			if lost[d.entry] {
				if d := s.hold.lose(queues[i], d.entry); d != nil {
					s.leaseLost(d)
				}
				continue
			}
			d.renewed.Store(since(sent))
		}
		q := queues[i]
		s.hold.add(q, s.takenEntries(q, replyAt(c.reply, 1), sent), 0)
		if at := q.strayed.Load(); at > 0 && since(sent)-at > int64(s.cfg.Lease+longestBlock) { // the server may have answered the read a while later
			q.strayed.CompareAndSwap(at, 0)
		}
	}
	s.keepClaims(lists)
}

func (s *session) leaseLost(d *delivery) {
	s.log.Warn("smallage: lost the lease of a job; another worker may run it, and this one's ending of it is ignored",
		"task", d.env.task, "job", d.env.id, "queue", d.queue.name)
	s.observe(Event{Kind: EventLeaseLost, Job: d.info()})
}

// confirmLease makes sure that an entry is still this worker's before its handler is called, and lets go of one that is
// not: a worker that was frozen must not start what another has taken over, nor claim a key for a job that has ended.
func (s *session) confirmLease(d *delivery) bool {
	for !d.lost.Load() && !s.leaseFresh(d) {
		c := newCall(renewScript, []string{d.queue.keys.stream, d.queue.keys.verdict}, s.consumer, neverStray, d.entry)
		reply, err := s.scripts.run(c)
		switch {
		case err != nil:
			if !s.holdOn(d, err) {
				return false
			}
		case len(replyList(replyAt(reply, 0))) > 0:
			s.stale(d)
			return false
		default:
			d.renewed.Store(since(c.sent))
		}
	}
	if d.lost.Load() {
		s.hold.drop(d)
		return false
	}
	return true
}

// neverStray makes a renewal look at the entries that it names alone.
const neverStray = math.MaxInt32
