package smallage

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Batch is an Enqueuer that collects jobs for Client.EnqueueBatch, which sends hundreds in one round trip. The generated
// wrappers take it like any other:
//
//	var batch smallage.Batch
//	for _, id := range docIDs {
//		if _, err := tasks.ReindexEnqueue(ctx, &batch, id); err != nil {
//			return err
//		}
//	}
//	err := client.EnqueueBatch(ctx, &batch)
//
// Its zero value is ready. It is safe for concurrent use, and may be filled again once it was sent.
type Batch struct {
	mu     sync.Mutex
	blocks [][]batchJob // never moved: growing one list would copy every job twice
	count  int
}

type batchJob struct {
	Job
	brought bool // the caller chose the id, so that enqueuing is idempotent
}

// Enqueue checks the job and keeps it, and returns the id that it will have. Nothing is sent. Errors: ErrInvalid, or
// ctx's error.
func (b *Batch) Enqueue(ctx context.Context, job Job) (JobID, error) {
	if err := job.check(); err != nil {
		return JobID{}, err
	}
	return b.enqueueEncoded(ctx, job)
}

// enqueueEncoded is Enqueue for a job whose arguments are known to be JSON.
func (b *Batch) enqueueEncoded(ctx context.Context, job Job) (JobID, error) {
	if err := ctx.Err(); err != nil {
		return JobID{}, fmt.Errorf("smallage: enqueue %s: %w", job.Task, err)
	}
	if err := job.checkEncoded(); err != nil {
		return JobID{}, err
	}
	brought := !job.ID.IsZero()
	if !brought {
		id, err := NewJobID()
		if err != nil {
			return JobID{}, err
		}
		job.ID = id
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	last := len(b.blocks) - 1
	if last < 0 || len(b.blocks[last]) == cap(b.blocks[last]) {
		b.blocks = append(b.blocks, make([]batchJob, 0, min(max(b.count, 16), flushCommands)))
		last++
	}
	b.blocks[last] = append(b.blocks[last], batchJob{job, brought})
	b.count++
	return job.ID, nil
}

// take empties the batch.
func (b *Batch) take() []*batchJob {
	b.mu.Lock()
	defer b.mu.Unlock()
	jobs := make([]*batchJob, 0, b.count)
	for _, block := range b.blocks {
		for i := range block {
			jobs = append(jobs, &block[i])
		}
	}
	b.blocks, b.count = nil, 0
	return jobs
}

// Len is how many jobs are waiting to be sent.
func (b *Batch) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.count
}

// BatchError says which jobs of a batch were not confirmed. All others are in their queues. errors.Is and errors.As look
// through all Failures.
type BatchError struct {
	// Sent is how many jobs the batch had.
	Sent int

	// Failures are in the order in which the jobs were collected.
	Failures []BatchFailure
}

// BatchFailure is one job that was not confirmed.
type BatchFailure struct {
	// Job is as it was collected, with the id that Batch.Enqueue returned for it.
	Job Job

	// Err is what Client.Enqueue returns: where it matches ErrUnconfirmed the job may be in its queue, else it is not.
	Err error
}

func (e *BatchError) Error() string {
	return fmt.Sprintf("smallage: %d of the batch's %d jobs were not confirmed, the first: %v", len(e.Failures), e.Sent, e.Failures[0].Err)
}

// Unwrap returns the errors of all failures.
func (e *BatchError) Unwrap() []error {
	list := make([]error, len(e.Failures))
	for i, f := range e.Failures {
		list[i] = f.Err
	}
	return list
}

// EnqueueBatch sends the jobs of a batch, in order, and empties it. It is not a transaction: jobs may start before the
// last is sent, and where something goes wrong some are enqueued and some are not. Then the error is a *BatchError with
// each job that was not confirmed. Each job is sent once, as by Enqueue, and passes the client's middleware by itself.
// A job after whose sending ctx ends is not waited for; those not sent by then are not enqueued.
func (c *Client) EnqueueBatch(ctx context.Context, b *Batch) error {
	if c == nil || c.rdb == nil {
		return invalidf("client: make one with NewClient")
	}
	if b == nil {
		return invalidf("batch: it is nil; pass a *smallage.Batch")
	}
	jobs := b.take()

	var chunks []*batchSend
	before := make(chan struct{}) // closed once the chunk before this one is in its queues
	close(before)
	for first := 0; first < len(jobs); first += flushCommands {
		s := c.gather(ctx, jobs[first:min(first+flushCommands, len(jobs))]) // while the one before is on its way
		chunks = append(chunks, s)
		<-before
		if first+flushCommands >= len(jobs) {
			c.deliver(ctx, s)
			break
		}
		before = make(chan struct{})
		go func(over chan struct{}) {
			defer close(over)
			c.deliver(ctx, s)
		}(before)
	}

	failed := &BatchError{Sent: len(jobs)}
	for _, s := range chunks {
		for i, err := range s.errs {
			if err != nil {
				failed.Failures = append(failed.Failures, BatchFailure{s.jobs[i].Job, err})
			}
		}
	}
	if len(failed.Failures) > 0 {
		return failed
	}
	return nil
}

// batchSend is one chunk on its way.
type batchSend struct {
	jobs []*batchJob
	errs []error    // of each job
	out  []outgoing // what the client's middleware let through
	room *commandRoom
	now  int // the job that passes the middleware
}

// outgoing is a job of a batch with its command.
type outgoing struct {
	job *Job
	cmd *onceCmd
	at  int // among the chunk's jobs
}

type batchKey struct{}

// gather takes jobs through the client's middleware, whose innermost part is collect.
func (c *Client) gather(ctx context.Context, jobs []*batchJob) *batchSend {
	n := len(jobs)
	s := &batchSend{jobs: jobs, errs: make([]error, n), out: make([]outgoing, 0, n), room: newCommandRoom(n)}
	inner := context.WithValue(ctx, batchKey{}, s)
	for i, job := range jobs {
		s.now = i
		if len(c.cfg.Middleware) == 0 { // spares a copy of each job
			s.errs[i] = c.add(ctx, s, &job.Job)
		} else {
			_, s.errs[i] = c.collector.Enqueue(inner, job.Job)
		}
	}
	return s
}

// collect is the innermost Enqueuer of a batch.
func (c *Client) collect(ctx context.Context, job Job) (JobID, error) {
	s, _ := ctx.Value(batchKey{}).(*batchSend)
	if s == nil {
		return JobID{}, errors.New("smallage: a middleware replaced the context of a batch's job; derive from the one it was given")
	}
	if err := c.add(ctx, s, &job); err != nil {
		return JobID{}, err
	}
	return job.ID, nil
}

// add prepares a job and leaves the sending to deliver.
func (c *Client) add(ctx context.Context, s *batchSend, job *Job) error {
	collected := s.jobs[s.now]
	cmd, err := c.prepare(ctx, job, s.room, collected.brought || job.ID != collected.ID, sameBytes(job.Args, collected.Args))
	if err != nil {
		return err
	}
	s.out = append(s.out, outgoing{job, cmd, s.now})
	return nil
}

// deliver sends what gather has prepared, in flushes of limited size.
func (c *Client) deliver(ctx context.Context, s *batchSend) {
	for first := 0; first < len(s.out); {
		last, size := first, 0
		for last < len(s.out) && last-first < flushCommands && size < flushBytes {
			size += s.out[last].cmd.size
			last++
		}
		c.deliverAtOnce(ctx, s, first, last)
		first = last
	}
}

func (c *Client) deliverAtOnce(ctx context.Context, s *batchSend, first, last int) {
	fail := func(i int, err error) { s.errs[s.out[i].at] = err }
	if err := ctx.Err(); err != nil {
		for i := first; i < last; i++ {
			fail(i, fmt.Errorf("smallage: enqueue %s: %w", s.out[i].job.Task, err))
		}
		return
	}
	queue := ""
	scripted := map[string]bool{} // queues whose master knows the script from then on, so that the order holds in each
	for i := first; i < last; i++ {
		o := &s.out[i]
		if o.cmd.script && !scripted[o.job.Queue] {
			scripted[o.job.Queue] = true
			o.cmd.setWhole(ctx)
		}
		if o.job.Queue == queue {
			continue
		}
		queue = o.job.Queue
		if err := c.register(ctx, queue); err != nil {
			for ; first < last; first++ {
				fail(first, enqueueError(s.out[first].job, err, false))
			}
			return
		}
	}
	cmds := make([]redis.Cmder, 0, last-first)
	for i := first; i < last; i++ {
		cmds = append(cmds, s.out[i].cmd)
	}
	sendAll(ctx, c.rdb, cmds)
	var unknown []redis.Cmder // scripts that the server forgot meanwhile: nothing ran, so sending them whole is their first run
	for i := first; i < last; i++ {
		if o := &s.out[i]; o.cmd.unknownScript() {
			o.cmd.setWhole(ctx)
			unknown = append(unknown, o.cmd)
		}
	}
	if len(unknown) > 0 {
		sendAll(ctx, c.rdb, unknown)
	}
	for i := first; i < last; i++ {
		if _, err := c.sent(s.out[i].job, s.out[i].cmd, s.out[i].cmd.outcome()); err != nil {
			fail(i, err)
		}
	}
}
