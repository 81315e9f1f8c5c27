package smallage

import "github.com/redis/go-redis/v9"

// Where a queue is known to have more, a flush of endings reads on right behind the acknowledge that makes room for it:
// a round trip less, and with two flushes under way Redis works on one half of what the worker holds while the worker
// runs the other.

// readsBehind returns the reads that are worth their place in a flush with these acknowledges, and the commands to send
// behind them. takeIn must get each. Where the last acknowledge failed, this one may not be carried out either, as by a
// server that has lost its scripts, and a read behind it would bring more than the worker may hold.
func (s *session) readsBehind(acks []queueAcks) (reads []*streamRead, commands []redis.Cmder) {
	for _, a := range acks {
		q := a.queue
		if q.paused.Load() || q.more.Load() || !q.acknowledged.Load() {
			continue
		}
		room, covered := s.hold.reserveBehind(q, len(a.list))
		if room == 0 {
			continue
		}
		r := s.newRead(q, room, -1, true)
		r.covered = covered
		reads, commands = append(reads, r), append(commands, r.entries, r.marks)
	}
	return reads, commands
}

// takeIn takes in what a flush has read. A worker that stops gives it back.
func (s *session) takeIn(r *streamRead) {
	if _, err := s.received(r); err != nil {
		s.readFailed(r.q, err)
	}
	s.hold.tell(r.q) // its reader waits where the flush has read for it
	if s.hold.isClosed() {
		s.handBack(s.hold.closeUnstarted())
	}
}
