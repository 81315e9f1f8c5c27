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

// pendingCall is a call that found the coalescer busy.
type pendingCall struct {
	call     *scriptCall
	answered chan struct{} // gets a token once the call has its reply or error
}

var pendingCalls = sync.Pool{New: func() any { return &pendingCall{answered: make(chan struct{}, 1)} }}

// flushesAtOnce keeps a slow flush from holding up the next.
const flushesAtOnce = 2

func newCoalescer(ctx context.Context, rdb redis.UniversalClient) *coalescer {
	return &coalescer{ctx: ctx, rdb: rdb}
}

// run sends one call and waits for its reply.
func (c *coalescer) run(call *scriptCall) (any, error) {
	c.mu.Lock()
	if c.busy < flushesAtOnce && len(c.waiting) == 0 {
		c.busy++
		c.done.Add(1)
		c.mu.Unlock()
		defer c.leave() // also where a hook of the application panics
		runScripts(c.ctx, c.rdb, []*scriptCall{call})
		return call.reply, call.err
	}
	p := pendingCalls.Get().(*pendingCall)
	p.call = call
	c.waiting = append(c.waiting, p)
	c.mu.Unlock()
	<-p.answered
	p.call = nil
	pendingCalls.Put(p)
	return call.reply, call.err
}

// leave gives the place of one flush to what has come meanwhile. The caller goes its way: it works for no other.
func (c *coalescer) leave() {
	if batch := c.take(); batch != nil {
		go c.flush(batch)
	}
}

// take returns what goes next, or nil; then the place is free.
func (c *coalescer) take() []*pendingCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	batch := c.waiting
	c.waiting = nil
	if len(batch) == 0 {
		c.busy--
		c.done.Done()
	}
	return batch
}

func (c *coalescer) flush(batch []*pendingCall) {
	for len(batch) > 0 {
		calls := make([]*scriptCall, len(batch))
		for i, p := range batch {
			calls[i] = p.call
		}
		runScripts(c.ctx, c.rdb, calls)
		for _, p := range batch {
			p.answered <- struct{}{}
		}
		batch = c.take()
	}
}

// close waits for the calls under way.
func (c *coalescer) close() { c.done.Wait() }
