package smallage

import (
	"context"
	"sync"
	"time"
)

// jobContext is a handler's context: the job's facts, the call that the innermost Handler makes, and a way to cancel it
// with a cause. Most of what a cancellable context costs is spent only once the handler asks for it, by Done or by
// deriving another context.
type jobContext struct {
	parent context.Context // cancellable, without a deadline
	info   JobInfo
	run    call

	mu     sync.Mutex
	made   context.Context // nil until it was asked for
	cancel context.CancelCauseFunc
	cause  error // why it ended, where it ended before it was made
}

func (c *jobContext) Deadline() (time.Time, bool) { return c.parent.Deadline() }

func (c *jobContext) Done() <-chan struct{} { return c.whole().Done() }

func (c *jobContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.made != nil:
		return c.made.Err()
	case c.cause != nil:
		return context.Canceled
	}
	return c.parent.Err()
}

func (c *jobContext) Value(key any) any {
	switch key.(type) {
	case infoKey:
		return &c.info
	case callKey:
		return c.run
	case *int: // package context asks so for the cancellable part, to derive from it or to tell its cause
		return c.whole().Value(key)
	}
	return c.parent.Value(key)
}

// end cancels the context; the first cause stays. A nil cause means that the handler has returned.
func (c *jobContext) end(cause error) {
	if cause == nil {
		cause = context.Canceled
	}
	c.mu.Lock()
	if c.cause == nil {
		c.cause = cause
	}
	cancel := c.cancel
	c.mu.Unlock()
	if cancel != nil {
		cancel(cause)
	}
}

func (c *jobContext) whole() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made == nil {
		c.made, c.cancel = context.WithCancelCause(c.parent)
		if c.cause != nil {
			c.cancel(c.cause)
		}
	}
	return c.made
}
