package smallage

import "context"

// jobContext is a handler's context: the job's facts, the call that the innermost Handler makes, and an end with a
// cause. It has no cancellable parent, since all jobs of a worker would quarrel for its lock; whoever ends a worker's
// jobs ends each.
type jobContext struct {
	context.Context
	d   *delivery
	run call
	end context.CancelCauseFunc
}

func (c *jobContext) init(base context.Context, d *delivery, run call) {
	c.d, c.run = d, run
	c.Context, c.end = context.WithCancelCause(base)
}

func (c *jobContext) Value(key any) any {
	switch key.(type) {
	case infoKey:
		return c.d.info()
	case callKey:
		return c.run
	}
	return c.Context.Value(key)
}
