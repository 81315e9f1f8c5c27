package smallage

import (
	"time"

	"github.com/redis/go-redis/v9"
)

// Where a queue is known to have more, a flush of endings reads on right behind the acknowledge that makes room for it:
// a round trip less, and with two flushes under way Redis works on one half of what the worker holds while the worker
// runs the other.

// readBehind is a read that goes with a flush of endings.
type readBehind struct {
	q       *queueState
	room    int
	covered int // of the room, by entries that the flush acknowledges before the read
	sent    time.Time
	buffer  *readBuffer
	read    *redis.RawWriteToCmd
	marks   *redis.ZSliceCmd
}

// readsBehind returns the reads that are worth their place in a flush with these acknowledges, and the commands to send
// behind them. takeIn must get each.
func (s *session) readsBehind(acks []queueAcks) (reads []*readBehind, commands []redis.Cmder) {
	for _, a := range acks {
		q := a.queue
		if q.paused.Load() || q.more.Load() || !q.acknowledged.Load() {
			continue
		}
		room, covered := s.hold.reserveBehind(q, len(a.list))
		if room == 0 {
			continue
		}
		r := &readBehind{q: q, room: room, covered: covered, sent: time.Now()}
		r.buffer = getReadBuffer(q.replySize(room))
		r.read, r.marks = s.readCommand(q, &r.buffer.reply, room, -1), s.marksCommand(q)
		reads, commands = append(reads, r), append(commands, r.read, r.marks)
	}
	return reads, commands
}

// takeIn takes in what a flush has read. A worker that stops gives it back.
func (s *session) takeIn(r *readBehind) {
	if found, err := r.marks.Result(); err == nil {
		s.noteCancelled(r.q, found)
	}
	defer r.buffer.put()
	if _, err := s.received(r.read, r.buffer, r.q, r.room, -1, r.sent); err != nil {
		s.readFailed(r.q, err)
	}
	s.hold.tell(r.q) // its reader waits where the flush has read for it
	if s.hold.isClosed() {
		s.handBack(s.hold.closeUnstarted())
	}
}
