package smallage

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const group = "workers"

// read feeds one queue's new entries into the hold until ctx ends, by one blocking read after another.
func (s *session) read(ctx context.Context, q *queueState) {
	var pause pauser
	timer := time.NewTimer(tickEvery)
	defer timer.Stop()
	busy := false // the last read brought something
	for ctx.Err() == nil {
		room := 0
		switch {
		case q.paused.Load():
		case q.more.Load():
			q.tickSoon()
		default:
			room = s.hold.reserve(q, !busy)
		}
		if room == 0 { // until there may be some
			timer.Reset(tickEvery)
			select {
			case <-q.roomy:
			case <-timer.C:
			case <-ctx.Done():
			}
			continue
		}
		n, err := s.readNew(q, room, busy)
		busy = n > 0
		if err != nil {
			s.readFailed(q, err)
			pause.wait(ctx)
			continue
		}
		s.outage.worked()
		pause.reset()
	}
}

// readNew blocks for new entries and returns how many it read. While entries keep coming it brings the cancel marks along,
// so that a job which was cancelled while it waited is not started; an idle queue's marks come with the tick.
func (s *session) readNew(q *queueState, room int, busy bool) (int, error) {
	block := s.unblock.blockFor(s.block)
	if s.hold.probe(q) {
		block = -1
	}
	r := s.newRead(q, room, block, busy)
	if busy {
		pipe := s.reading.Pipeline()
		_ = pipe.Process(s.base, r.entries)
		_ = pipe.Process(s.base, r.marks)
		_, _ = pipe.Exec(s.base) // each command holds its own error
	} else {
		_ = s.reading.Process(s.base, r.entries)
	}
	return s.received(r)
}

// received takes in what a read brought in exchange for its reservation, and returns how many entries that were.
func (s *session) received(r *streamRead) (int, error) {
	defer r.buffer.put()
	q := r.q
	if r.marks != nil {
		if found, err := r.marks.Result(); err == nil {
			s.noteCancelled(q, found)
		}
	}
	entries, err := s.entriesOf(r)
	if err != nil {
		s.hold.add(q, nil, r.room)
		if errors.Is(err, redis.Nil) {
			s.hold.wasDry(q, true)
			return 0, nil
		}
		return 0, err
	}
	point("read")
	list, all := make([]*delivery, 0, len(entries)), make([]delivery, len(entries))
	argsSize := 0
	for i, e := range entries {
		if len(e.fields) == 2 && string(e.fields[0]) == fieldWake {
			s.endings.acknowledge(q, string(e.id))
			q.tickSoon()
			continue
		}
		s.decode(&all[i], q, e, 1, "", r.made)
		argsSize += len(all[i].env.args)
		list = append(list, &all[i])
	}
	args := make([]byte, 0, argsSize) // of all jobs, since the reply goes back with its buffer
	for _, d := range list {
		begin := len(args)
		args = append(args, d.env.args...)
		d.env.args = args[begin:len(args):len(args)]
	}
	s.hold.wasDry(q, len(entries) < r.room)
	s.hold.add(q, list, r.room)
	return len(entries), nil
}

// entriesOf parses a reply.
func (s *session) entriesOf(r *streamRead) ([]entry, error) {
	if err := r.entries.Err(); err != nil {
		return nil, err
	}
	reply := r.buffer.reply.bytes
	entries, refused, err := r.buffer.parse(reply)
	if !refused {
		if len(entries) > 0 {
			r.q.entrySize.Store(int64(len(reply)/len(entries) + 1))
		}
		return entries, err
	}
	streams, err := s.reading.XReadGroup(s.base, &redis.XReadGroupArgs{
		Group: group, Consumer: s.consumer, Streams: []string{r.q.keys.stream, ">"}, Count: int64(r.room), Block: r.block,
	}).Result()
	return streamEntries(streams), err
}

// mayHaveStrayed notes that a reply got lost which may have brought entries.
func (q *queueState) mayHaveStrayed() {
	if q.strayed.Load() >= 0 {
		q.strayed.Store(since(time.Now()))
	}
}

// readFailed makes good a stream that is gone: a tick makes the group anew, from the stream's beginning.
func (s *session) readFailed(q *queueState, err error) {
	if redis.HasErrorPrefix(err, "NOGROUP") || strings.Contains(err.Error(), "NOGROUP") || redis.HasErrorPrefix(err, "UNBLOCKED") {
		q.tickSoon()
		return
	}
	q.mayHaveStrayed()
	s.outage.failed(err)
}

// pauser spaces out tries against a server that fails: 50 ms, doubling up to 2 s.
type pauser struct{ last time.Duration }

func (p *pauser) reset() { p.last = 0 }

// wait pauses unless ctx ends.
func (p *pauser) wait(ctx context.Context) {
	p.last = backoff(max(2*p.last, 50*time.Millisecond), 2*time.Second, 1)
	sleep(ctx, p.last)
}
