package smallage

import (
	"context"
	"sync"

	"github.com/redis/go-redis/v9"
)

// coalescer sends calls that are made at the same time in one flush. A call never waits for others to come: the first
// is sent at once, and those that come while it is under way go together.
type coalescer struct {
	ctx context.Context
	rdb redis.UniversalClient

	mu      sync.Mutex
	waiting []*pendingCall
	busy    int // flushes under way
	done    sync.WaitGroup
}

type pendingCall struct {
	*scriptCall
	answered chan struct{}
}

// flushesAtOnce keeps a slow flush from holding up the next.
const flushesAtOnce = 2

func newCoalescer(ctx context.Context, rdb redis.UniversalClient) *coalescer {
	return &coalescer{ctx: ctx, rdb: rdb}
}

// run sends one call and waits for its reply.
func (c *coalescer) run(call *scriptCall) (any, error) {
	p := &pendingCall{call, make(chan struct{})}
	c.mu.Lock()
	c.waiting = append(c.waiting, p)
	if c.busy < flushesAtOnce {
		c.busy++
		c.done.Add(1)
		go c.flush()
	}
	c.mu.Unlock()
	<-p.answered
	return call.reply, call.err
}

func (c *coalescer) flush() {
	defer c.done.Done()
	for {
		c.mu.Lock()
		batch := c.waiting
		c.waiting = nil
		if len(batch) == 0 {
			c.busy--
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
		calls := make([]*scriptCall, len(batch))
		for i, p := range batch {
			calls[i] = p.scriptCall
		}
		runScripts(c.ctx, c.rdb, calls)
		for _, p := range batch {
			close(p.answered)
		}
	}
}

// close waits for the calls under way.
func (c *coalescer) close() { c.done.Wait() }
