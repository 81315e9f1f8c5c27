package crashtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	smallage "github.com/smallage/smallage/runtime"
)

// Job is one job that a test enqueued, and what became of it as far as its waiter knows.
type Job struct {
	ID    smallage.JobID
	Task  *smallage.Task[Args]
	Key   string
	Asked bool // for a result
	Maybe bool // the enqueuer was told that it may or may not be in the queue
	Late  bool // no worker can start it in time

	Outcome smallage.Result // where it asked and is in the queue for certain
	WaitErr error
}

// Load enqueues jobs and waits for those that asked for a result. It is safe for concurrent use.
type Load struct {
	client *smallage.Client

	mu      sync.Mutex
	jobs    []*Job
	waiting sync.WaitGroup
	limit   time.Duration // of a wait
}

// NewLoad returns a load that waits at most this long for each outcome.
func NewLoad(client *smallage.Client, limit time.Duration) *Load {
	return &Load{client: client, limit: limit}
}

// Spec says what to enqueue.
type Spec struct {
	Task  *smallage.Task[Args]
	Nap   time.Duration
	Key   string
	Asked bool
	Delay time.Duration
	Late  bool // expires before any worker is there
	OwnID bool // the caller brings the id and sends until it succeeds
}

// Enqueue sends one job, again and again where nothing was sent or where the id is its own.
func (l *Load) Enqueue(ctx context.Context, spec Spec) error {
	opts := []smallage.Option[Args]{With.Delay(spec.Delay)}
	if spec.Late {
		opts = append(opts, With.ExpiresIn(time.Millisecond))
	}
	if spec.Key != "" {
		opts = append(opts, With.Dedup(spec.Key))
	}
	if spec.Asked {
		opts = append(opts, With.ResultTTL(10*time.Minute))
	}
	if spec.OwnID {
		id, err := smallage.NewJobID()
		if err != nil {
			return err
		}
		opts = append(opts, With.ID(id))
	}
	job := &Job{Task: spec.Task, Key: spec.Key, Asked: spec.Asked, Late: spec.Late}
	args := Args{Key: spec.Key, Nap: int(spec.Nap.Milliseconds())}
	for ctx.Err() == nil {
		id, err := spec.Task.Enqueue(ctx, l.client, args, opts)
		switch {
		case err == nil:
			job.ID = id
			l.add(job)
			return nil
		case spec.OwnID:
		case errors.Is(err, smallage.ErrUnconfirmed):
			job.ID, job.Maybe = id, true
			l.add(job)
			return nil
		case errors.Is(err, smallage.ErrInvalid), !id.IsZero():
			return fmt.Errorf("enqueue %s: id %s beside %w", spec.Task.Name, id, err)
		}
		if err := nap(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (l *Load) add(job *Job) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.jobs = append(l.jobs, job)
	if job.Asked && !job.Maybe {
		l.waiting.Go(func() {
			outcome, err := l.client.Wait(context.Background(), job.ID, l.limit)
			l.mu.Lock()
			defer l.mu.Unlock()
			job.Outcome, job.WaitErr = outcome, err
		})
	}
}

// Jobs returns the jobs once every waiter was answered or gave up.
func (l *Load) Jobs() []*Job {
	l.waiting.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.jobs
}
