package smallage

import (
	"context"
	"errors"
	"net"
	"runtime"
	"sync"

	"github.com/redis/go-redis/v9"
)

// sendLane sends the enqueue commands of concurrent callers together. None waits for others to come: a caller that finds
// the lane free sends its command at once, and those that find it busy go together as soon as it is free again.
type sendLane struct {
	rdb  redis.UniversalClient
	kept keptConn

	mu      sync.Mutex
	waiting []*passage
	busy    int // sendings under way
}

const (
	// sendingsAtOnce keeps a slow flush, or a long way to the server, from holding up all others.
	sendingsAtOnce = 4

	// The most that is sent in one flush, so that one caller's megabytes do not hold up many.
	flushCommands = 500
	flushBytes    = 1 << 20
)

// passage is a command that found the lane busy.
type passage struct {
	cmd  *onceCmd
	done chan struct{} // gets a token once the command has its reply or error
}

var passages = sync.Pool{New: func() any { return &passage{done: make(chan struct{}, 1)} }}

// send carries out one command. sent is false where ctx ended before anything was sent. Where it ends later, send returns
// at once with ctx's error, and the command must not be looked at any more.
func (l *sendLane) send(ctx context.Context, cmd *onceCmd) (sent bool, err error) {
	l.mu.Lock()
	if l.busy < sendingsAtOnce && len(l.waiting) == 0 {
		l.busy++
		l.mu.Unlock()
		return true, l.sendAlone(ctx, cmd)
	}
	p := passages.Get().(*passage)
	p.cmd = cmd
	l.waiting = append(l.waiting, p)
	l.mu.Unlock()
	select {
	case <-p.done:
	case <-ctx.Done():
		if l.withdraw(p) {
			return false, ctx.Err()
		}
		select {
		case <-p.done:
		default:
			return true, ctx.Err() // the flush still refers to p, so that it is not used again
		}
	}
	p.cmd = nil
	passages.Put(p)
	return true, cmd.outcome()
}

// sendAlone carries out one command by itself.
func (l *sendLane) sendAlone(ctx context.Context, cmd *onceCmd) (err error) {
	defer l.leave() // also where a hook of the application panics
	conn := l.kept.borrow()
	if conn == nil {
		return l.rdb.Process(ctx, cmd)
	}
	good := false
	defer func() { l.kept.giveBack(good) }()
	err = conn.Process(ctx, cmd)
	good = err == nil
	if !cmd.text.written && errors.Is(err, net.ErrClosed) {
		// The application has closed the client, or the client its connections to a former master.
		return l.rdb.Process(ctx, cmd)
	}
	return err
}

// withdraw takes a command back that no flush has taken yet.
func (l *sendLane) withdraw(p *passage) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, other := range l.waiting {
		if other == p {
			l.waiting = append(l.waiting[:i], l.waiting[i+1:]...)
			return true
		}
	}
	return false
}

// leave gives the place of one sending to what has come meanwhile. The caller goes its way: it works for no other.
func (l *sendLane) leave() {
	if batch := l.take(); batch != nil {
		go l.flush(batch)
	}
}

// take returns what goes next, or nil; then the place is free.
func (l *sendLane) take() []*passage {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, size := 0, 0
	for n < len(l.waiting) && n < flushCommands && size < flushBytes {
		size += l.waiting[n].cmd.size
		n++
	}
	if n == 0 {
		l.busy--
		return nil
	}
	batch := l.waiting[:n:n]
	l.waiting = l.waiting[n:]
	if len(l.waiting) == 0 {
		l.waiting = nil
	}
	return batch
}

func (l *sendLane) flush(batch []*passage) {
	for batch != nil {
		cmds := make([]redis.Cmder, len(batch))
		for i, p := range batch {
			cmds[i] = p.cmd
		}
		sendAll(context.Background(), l.rdb, cmds)
		for _, p := range batch {
			p.done <- struct{}{}
		}
		runtime.Gosched() // those who were answered go first: many send again at once, and the next flush carries them all
		batch = l.take()
	}
}

// sendAll sends commands in one flush; each holds its own reply or error. Many go over one of the pool's connections for
// single commands where it has plenty, and not over those that go-redis has for flushes: by default their buffer is smaller,
// so that the server works on the first while the last are written.
func sendAll(ctx context.Context, rdb redis.UniversalClient, cmds []redis.Cmder) {
	pipe := rdb.Pipeline()
	if single := mayHold(rdb); len(cmds) >= manyCommands && single != nil && plenty(single) {
		conn := single.Conn()
		defer func() { _ = conn.Close() }() // the pool closes it where it is not good
		pipe = conn.Pipeline()
	}
	_ = pipe.BatchProcess(ctx, cmds...) // only queued
	_, _ = pipe.Exec(ctx)
}

const manyCommands = 200

// sendLanes has one lane for a single server. Elsewhere each queue has its own, so that a flush goes to one server and one
// that is down holds up only its own queues.
type sendLanes struct {
	rdb    redis.UniversalClient
	single *sendLane
	queues sync.Map // queue → *sendLane
}

func newSendLanes(rdb redis.UniversalClient) *sendLanes {
	l := &sendLanes{rdb: rdb}
	if _, ok := rdb.(*redis.Client); ok {
		l.single = &sendLane{rdb: rdb, kept: keptConn{rdb: mayHold(rdb)}}
	}
	return l
}

// rest gives back what the lanes hold of the Redis client.
func (l *sendLanes) rest() {
	if l.single != nil {
		l.single.kept.expire(nil)
	}
}

func (l *sendLanes) of(queue string) *sendLane {
	if l.single != nil {
		return l.single
	}
	if known, ok := l.queues.Load(queue); ok {
		return known.(*sendLane)
	}
	made, _ := l.queues.LoadOrStore(queue, &sendLane{rdb: l.rdb})
	return made.(*sendLane)
}
