package smallage

import (
	"context"
	"time"
)

// tickAlways ticks about once a second, when a delayed job comes due, and when asked to, until ctx ends. It has a timer
// of its own: a blocking read that times out may do so a tenth of a second late.
func (s *session) tickAlways(ctx context.Context, q *queueState) {
	var pause pauser
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-q.kick:
		case <-ctx.Done():
			return
		}
		next, err := s.tick(q)
		if err != nil {
			s.outage.failed(err)
			pause.wait(ctx)
			next = 0
		} else {
			s.outage.worked()
			pause.reset()
		}
		timer.Reset(next)
	}
}

// tick looks at the queue by script, see tick.lua, and returns how long until the next look.
func (s *session) tick(q *queueState) (time.Duration, error) {
	room := s.hold.reserveRest(q)
	suspectsLeft := false
	defer func() { s.hold.soughtSuspect(q, suspectsLeft) }()
	suspects := 0
	if room > 0 && s.hold.maySuspect() {
		suspects = 1
		defer s.hold.noSuspect()
	}
	sent := time.Now()
	k := q.keys
	args := []any{s.consumer, s.cfg.Lease.Milliseconds(), room, suspects, promoteLimit, tickEvery.Milliseconds(), s.hold.newestMark(q), s.cfg.harmlessDeliveries()}
	for _, d := range s.hold.inHand(q) {
		args = append(args, d.entry)
	}
	reply, err := tickScript.run(s.base, s.ticking,
		[]string{k.stream, k.delayed, k.delayedJobs, k.workers, k.pass, k.verdict, k.cancel, k.paused}, args...)
	if err != nil {
		s.hold.add(q, nil, room)
		q.mayHaveStrayed()
		return 0, err
	}
	q.setRedisTime(replyNumber(replyAt(reply, 5)), sent)
	point("ticked")
	q.paused.Store(replyNumber(replyAt(reply, 0)) == 1)
	next := tickEvery
	if due := replyNumber(replyAt(reply, 1)); due >= 0 {
		next = min(next, time.Duration(due)*time.Millisecond)
	}
	waiting := replyNumber(replyAt(reply, 2))
	q.more.Store(waiting&1 != 0)
	suspectsLeft = waiting&2 != 0
	s.noteCancelled(q, replyScores(replyAt(reply, 4)))
	for _, d := range s.hold.add(q, s.takenEntries(q, replyAt(reply, 3), sent), room) {
		if d.count > 1 {
			s.log.Info("smallage: took over a job whose worker no longer answers",
				"task", d.env.task, "job", d.env.id, "queue", q.name, "delivery", d.count)
			s.observe(Event{Kind: EventReclaimed, Job: d.info()})
		}
	}
	s.hold.tell(q)
	return next - time.Since(sent), nil
}

// setRedisTime notes what Redis's clock showed, in ms, somewhere between sent and now.
func (q *queueState) setRedisTime(ms int64, sent time.Time) {
	q.clock.Store(ms*int64(time.Millisecond) - since(sent.Add(time.Since(sent)/2)))
}

// redisTime is what Redis's clock shows now, in ms, to within half the round trip of the last tick. Asking Redis would cost
// a tenth of what it takes to write an outcome.
func (q *queueState) redisTime() int64 {
	if q.clock.Load() == 0 { // before the first tick, when no job was read
		return time.Now().UnixMilli()
	}
	return (q.clock.Load() + since(time.Now())) / int64(time.Millisecond)
}
