package smallage

import (
	"context"
	"errors"
	"runtime"
	"sync"

	"github.com/redis/go-redis/v9"
)

// coalescer sends calls that are made at the same time in one flush. A call never waits for others to come: it goes with
// those of the goroutines that are ready to run at that moment, and those that come while it is under way go together.
type coalescer struct {
	ctx context.Context
	rdb redis.UniversalClient

	mu        sync.Mutex
	waiting   []*pendingCall
	gathering bool // a caller is about to send what is waiting
	busy      int  // flushes under way, or about to be
	done      sync.WaitGroup
}

// pendingCall is a call on its way.
type pendingCall struct {
	call     *scriptCall
	answered chan struct{} // gets a token once the call has its reply or error
}

var pendingCalls = sync.Pool{New: func() any { return &pendingCall{answered: make(chan struct{}, 1)} }}

// flushesAtOnce keeps a slow flush from holding up the next.
const flushesAtOnce = 2

var errFlushBroken = errors.New("smallage: a hook of the Redis client panicked or ended its goroutine")

func newCoalescer(ctx context.Context, rdb redis.UniversalClient) *coalescer {
	return &coalescer{ctx: ctx, rdb: rdb}
}

// run sends one call and waits for its reply.
func (c *coalescer) run(call *scriptCall) (any, error) {
	p := pendingCalls.Get().(*pendingCall)
	p.call = call
	if c.join(p) {
		c.sendGathered()
	}
	<-p.answered
	p.call = nil
	pendingCalls.Put(p)
	return call.reply, call.err
}

// join adds a call, and reports whether the caller is to send what is waiting.
func (c *coalescer) join(p *pendingCall) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = append(c.waiting, p)
	if c.gathering || c.busy == flushesAtOnce {
		return false
	}
	c.gathering = true
	c.busy++
	c.done.Add(1)
	return true
}

// sendGathered sends the caller's call with those that goroutines which are ready to run add first: of many jobs that
// were read at once, each would else make a way to Redis and back of its own. Where none is ready this takes no time.
func (c *coalescer) sendGathered() {
	defer func() { // also where a hook of the application panics
		if batch := c.take(); batch != nil {
			go c.flush(batch) // the caller goes its way: it works for no other
		}
	}()
	runtime.Gosched()
	c.mu.Lock()
	batch := c.waiting
	c.waiting, c.gathering = nil, false
	c.mu.Unlock()
	c.send(batch)
}

// take returns what goes next, or nil; then the place of one flush is free.
func (c *coalescer) take() []*pendingCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gathering || len(c.waiting) == 0 {
		c.busy--
		c.done.Done()
		return nil
	}
	batch := c.waiting
	c.waiting = nil
	return batch
}

func (c *coalescer) flush(batch []*pendingCall) {
	for batch != nil {
		c.send(batch)
		batch = c.take()
	}
}

func (c *coalescer) send(batch []*pendingCall) {
	calls := make([]*scriptCall, len(batch))
	for i, p := range batch {
		calls[i] = p.call
	}
	sent := false
	defer func() {
		for i, p := range batch {
			if !sent {
				calls[i].err = errFlushBroken
			}
			p.answered <- struct{}{}
		}
	}()
	runScripts(c.ctx, c.rdb, calls)
	sent = true
}

// close waits for the calls under way.
func (c *coalescer) close() { c.done.Wait() }
