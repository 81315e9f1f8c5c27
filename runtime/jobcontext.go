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

func newJobContext(base context.Context, info JobInfo, run call) *jobContext {
	c := &jobContext{info: info, run: run}
	c.Context, c.end = context.WithCancelCause(base)
	return c
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
