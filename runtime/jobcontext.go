package smallage

import "context"

// jobContext is a handler's context: the job's facts, the call that the innermost Handler makes, and an end with a
// cause. It has no cancellable parent, since all jobs of a worker would quarrel for its lock; whoever ends a worker's
// jobs ends each.
type jobContext struct {
	context.Context
	info JobInfo
	run  call
	end  context.CancelCauseFunc
}

func (c *jobContext) init(base context.Context, info JobInfo, run call) {
	c.info, c.run = info, run
	c.Context, c.end = context.WithCancelCause(base)
}

func (c *jobContext) Value(key any) any {
	switch key.(type) {
	case infoKey:
		return &c.info
	case callKey:
		return c.run
	}
	return c.Context.Value(key)
}
