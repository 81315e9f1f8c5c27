package smallage

import (
	"context"
	"fmt"
	"slices"
)

// Call runs the handler of one job in place, on arguments decoded as a worker would, and returns the handler's value.
// It is for unit tests that go from a generated wrapper through a CollectingEnqueuer to the handler: there is no Redis,
// no retry, no timeout, and no deduplication. It returns an error that matches ErrInvalid where the table does not know
// the task or the arguments do not fit.
func (t Table) Call(ctx context.Context, job Job) ([]byte, error) {
	for _, e := range t.entries {
		if e.name != job.Task && !slices.Contains(e.aliases, job.Task) {
			continue
		}
		run, err := e.prepare(job.Args)
		if err != nil {
			return nil, fmt.Errorf("%w job of task %s: %w", ErrInvalid, job.Task, err)
		}
		return run(ctx)
	}
	return nil, invalidf("job of task %s: the table has no such task", job.Task)
}
