package smallage

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const group = "workers"

// readerState belongs to the queue's reader alone.
type readerState struct {
	nextTick time.Time // by the local monotonic clock
	paused   bool
	more     bool // handed-back entries wait for room: they come before new ones
	pause    pauser

	busy       bool   // the last read brought something
	newestMark string // score of the newest cancel mark seen
}

// read feeds one queue's entries into the hold until ctx ends. Between blocking reads it ticks: about once a second, and
// when a delayed job comes due. An idle queue so costs two commands a second.
func (s *session) read(ctx context.Context, q *queueState) {
	r := &q.reader
	for ctx.Err() == nil {
		if wait := time.Until(r.nextTick); wait <= 0 {
			s.tick(ctx, q)
			continue
		}
		room := s.hold.room(q)
		if r.more && room > 0 {
			r.nextTick = time.Time{}
			continue
		}
		if room == 0 || r.paused {
			s.waitRoom(ctx, q)
			continue
		}
		s.readNew(ctx, q, room)
	}
}

// waitRoom waits until there may be room, a tick is due, or ctx ends.
func (s *session) waitRoom(ctx context.Context, q *queueState) {
	timer := time.NewTimer(time.Until(q.reader.nextTick))
	defer timer.Stop()
	roomy := q.roomy
	if q.reader.paused {
		roomy = nil
	}
	select {
	case <-roomy:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// readNew blocks for new entries until the next tick at the longest.
func (s *session) readNew(ctx context.Context, q *queueState, room int) {
	block := min(max(time.Until(q.reader.nextTick), time.Millisecond), longestBlock)
	sent := time.Now()
	streams, err := s.readGroup(q, room, block)
	q.reader.busy = len(streams) > 0
	switch {
	case errors.Is(err, redis.Nil):
		s.outage.worked()
		q.reader.pause.reset()
		s.hold.add(q, nil, room)
		return
	case err != nil:
		s.readFailed(ctx, q, err)
		return
	}
	s.outage.worked()
	q.reader.pause.reset()
	point("read")
	var list []*delivery
	for _, stream := range streams {
		for _, m := range stream.Messages {
			if _, wake := m.Values[fieldWake]; wake && len(m.Values) == 1 {
				s.endings.acknowledge(q, m.ID)
				q.reader.nextTick = time.Time{}
				continue
			}
			list = append(list, s.newDelivery(q, m.ID, m.Values, 1, "", sent))
		}
	}
	s.hold.add(q, list, room)
}

// readGroup is the blocking read. While entries keep coming it brings the cancel marks along, so that a job which was
// cancelled while it waited is not started; an idle queue's marks come with the tick.
func (s *session) readGroup(q *queueState, room int, block time.Duration) ([]redis.XStream, error) {
	args := &redis.XReadGroupArgs{
		Group: group, Consumer: s.consumer, Streams: []string{q.keys.stream, ">"}, Count: int64(room), Block: block,
	}
	if !q.reader.busy {
		return s.reading.XReadGroup(s.base, args).Result()
	}
	pipe := s.reading.Pipeline()
	read := pipe.XReadGroup(s.base, args)
	marks := pipe.ZRangeByScoreWithScores(s.base, q.keys.cancel, &redis.ZRangeBy{Min: q.reader.newestMark, Max: "+inf"})
	_, _ = pipe.Exec(s.base) // each command holds its own error
	if found, err := marks.Result(); err == nil {
		s.noteCancelled(q, found)
	}
	return read.Result()
}

// mayHaveStrayed notes that a reply got lost which may have brought entries.
func (q *queueState) mayHaveStrayed() {
	if q.strayed.Load() >= 0 {
		q.strayed.Store(since(time.Now()))
	}
}

// readFailed makes good a stream that is gone, and otherwise waits before the next try.
func (s *session) readFailed(ctx context.Context, q *queueState, err error) {
	if redis.HasErrorPrefix(err, "NOGROUP") || strings.Contains(err.Error(), "NOGROUP") || redis.HasErrorPrefix(err, "UNBLOCKED") {
		q.reader.nextTick = time.Time{} // a tick makes the group anew, from the stream's beginning
		q.reader.pause.wait(ctx)        // bounded work, should it vanish again and again
		return
	}
	q.mayHaveStrayed()
	s.outage.failed(err)
	q.reader.pause.wait(ctx)
}

// tick looks at the queue by script: see tick.lua.
func (s *session) tick(ctx context.Context, q *queueState) {
	room := s.hold.room(q)
	suspects := 0
	if room > 0 && s.hold.maySuspect() {
		suspects = 1
		defer s.hold.noSuspect()
	}
	sent := time.Now()
	k := q.keys
	reply, err := tickScript.run(s.base, s.reading,
		[]string{k.stream, k.delayed, k.delayedJobs, k.workers, k.pass, k.verdict, k.cancel, k.paused},
		s.consumer, s.cfg.Lease.Milliseconds(), room, suspects, promoteLimit, tickEvery.Milliseconds(), q.reader.newestMark)
	if err != nil {
		q.mayHaveStrayed()
		s.outage.failed(err)
		q.reader.nextTick = time.Now().Add(q.reader.pause.wait(ctx))
		return
	}
	point("ticked")
	s.outage.worked()
	q.reader.paused = replyNumber(replyAt(reply, 0)) == 1
	next := tickEvery
	if due := replyNumber(replyAt(reply, 1)); due >= 0 {
		next = min(next, time.Duration(due)*time.Millisecond)
	}
	q.reader.more = replyNumber(replyAt(reply, 2)) == 1
	q.reader.nextTick = sent.Add(next)
	s.noteCancelled(q, replyScores(replyAt(reply, 4)))
	for _, d := range s.hold.add(q, s.takenEntries(q, replyAt(reply, 3), sent), -1) {
		if d.count > 1 {
			s.log.Info("smallage: took over a job whose worker no longer answers",
				"task", d.env.task, "job", d.env.id, "queue", q.name, "delivery", d.count)
			s.observe(Event{Kind: EventReclaimed, Job: d.info()})
		}
	}
}

// pauser spaces out tries against a server that fails: 50 ms, doubling up to 2 s.
type pauser struct{ last time.Duration }

func (p *pauser) reset() { p.last = 0 }

// wait pauses unless ctx ends, and returns 0, the time from now to the next try.
func (p *pauser) wait(ctx context.Context) time.Duration {
	p.last = backoff(max(2*p.last, 50*time.Millisecond), 2*time.Second, 1)
	timer := time.NewTimer(p.last)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return 0
}
