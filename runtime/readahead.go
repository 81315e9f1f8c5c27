package smallage

import (
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Where a queue is known to have more, a flush of endings reads on right behind the acknowledge that makes room for it:
// one round trip less, and Redis has the next jobs ready when it is done with the last.

// flushRead is a read that goes with a flush of endings.
type flushRead struct {
	q     *queueState
	room  int
	sent  time.Time
	read  *onceRead
	marks *redis.ZSliceCmd
}

// onceRead is a read that go-redis must not send again by itself: the entries of a lost reply must be known to be lost.
type onceRead struct{ *redis.RawCmd }

// NoRetry keeps go-redis from sending the command again after an error.
func (*onceRead) NoRetry() bool { return true }

var readBuffers = sync.Pool{New: func() any { return new(readBuffer) }}

// sendAndRead sends the calls of a flush in one round trip, with a read of every queue of which it acknowledges some and
// which has more. finish must take in what it returns.
func (s *session) sendAndRead(calls []*scriptCall, acks []queueAcks) (reads []*flushRead) {
	for _, a := range acks {
		q := a.queue
		if q.paused.Load() || q.more.Load() {
			continue
		}
		if room := s.hold.reserveBehind(q, len(a.list)); room > 0 {
			reads = append(reads, &flushRead{q: q, room: room, read: &onceRead{s.readCommand(s.base, q, room, -1)}})
		}
	}
	if len(reads) == 0 {
		runScripts(s.base, s.rdb, calls)
		return nil
	}
	runScriptsAnd(s.base, s.rdb, calls, func(pipe redis.Pipeliner) {
		for _, r := range reads {
			r.sent = time.Now()
			_ = pipe.Process(s.base, r.read) // only queued
			r.marks = s.readMarks(pipe, r.q)
		}
	})
	return reads
}

// takeIn takes in what a flush has read. A worker that stops gives it back.
func (s *session) takeIn(r *flushRead) {
	if found, err := r.marks.Result(); err == nil {
		s.noteCancelled(r.q, found)
	}
	buffer := readBuffers.Get().(*readBuffer)
	defer readBuffers.Put(buffer)
	entries, err := s.entriesOf(r.read.RawCmd, r.q, buffer, r.room, -1)
	if _, err := s.received(r.q, entries, r.room, r.sent, err); err != nil {
		s.readFailed(r.q, err)
	}
	if s.hold.isClosed() {
		s.handBack(s.hold.closeUnstarted())
	}
}
