package smallage

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// CollectingEnqueuer keeps the jobs that it is given, for unit tests without Redis. It checks and encodes as a Client
// does. Its zero value is ready; it is safe for concurrent use.
type CollectingEnqueuer struct {
	// Err, where set, is what Enqueue returns instead of collecting, for tests of what an application does then.
	Err error

	mu   sync.Mutex
	jobs []Job
}

// Enqueue checks the job as a Client would and keeps it. Like a Client it chooses an id where the job has none, and
// ignores a job whose caller-supplied id its queue has already seen.
func (c *CollectingEnqueuer) Enqueue(ctx context.Context, job Job) (JobID, error) {
	if err := ctx.Err(); err != nil {
		return JobID{}, err
	}
	if c.Err != nil {
		return JobID{}, c.Err
	}
	if err := job.check(); err != nil {
		return JobID{}, err
	}
	if len(job.Args) > defaultMaxArgsBytes {
		return JobID{}, tooLarge(&job, defaultMaxArgsBytes)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if job.ID.IsZero() {
		id, err := NewJobID()
		if err != nil {
			return JobID{}, err
		}
		job.ID = id
	} else if slices.ContainsFunc(c.jobs, func(known Job) bool { return known.ID == job.ID && known.Queue == job.Queue }) {
		return job.ID, nil
	}
	job.Args = slices.Clone(job.Args)
	job.Headers = maps.Clone(job.Headers)
	c.jobs = append(c.jobs, job)
	return job.ID, nil
}

// Jobs returns the jobs collected so far, in order, each with the id that Enqueue returned for it.
func (c *CollectingEnqueuer) Jobs() []Job {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.jobs)
}

// Reset forgets the collected jobs.
func (c *CollectingEnqueuer) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.jobs = nil
}
