package smallage

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// ClientConfig says how a client works. Its zero value works.
type ClientConfig struct {
	// Namespace begins every Redis key; empty: smallage. Client and worker must agree.
	Namespace string

	// MaxArgsBytes is the largest JSON object of arguments that is accepted; 0: 1 MiB.
	MaxArgsBytes int

	// MaxWaitConns is how many connections waits use at most, apart from the Redis client's own pool and for each master
	// of a cluster; 0: 16. However many waits there are, they never take more than five: one that listens for all of
	// them, and four on which the first few block.
	MaxWaitConns int

	// IDWindow is how long the id that a caller brought (option ID) is remembered; 0: 24 h.
	IDWindow time.Duration

	// Observer is told of each job that was enqueued; nil costs nothing.
	Observer Observer

	// Middleware wraps enqueuing, the first outermost. Each is called twice by NewClient: for Enqueue and for EnqueueBatch.
	Middleware []func(Enqueuer) Enqueuer
}

const (
	defaultMaxWaitConns = 16
	defaultIDWindow     = 24 * time.Hour
	registerEvery       = time.Minute // how often a client names a queue in the registry
)

// Client enqueues jobs and looks up their outcomes. It is safe for concurrent use; an application makes one and keeps it.
// It touches the keys of the queues, results and the queue registry of its namespace.
type Client struct {
	cfg       ClientConfig
	rdb       redis.UniversalClient
	keys      *keyspace
	enqueuer  Enqueuer // the middleware around send
	collector Enqueuer // the middleware around collect
	lanes     *sendLanes
	waits     *waits
	silent    recentIDs // jobs enqueued without ResultTTL

	mu         sync.Mutex
	registered map[string]time.Time // queue → when it was last named in the registry
}

// NewClient checks the configuration and returns a client. It does not talk to Redis. Errors match ErrInvalid.
func NewClient(rdb redis.UniversalClient, cfg ClientConfig) (*Client, error) {
	var problems []error
	problem := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if isNil(rdb) {
		problem("Redis client: it is nil; pass redis.NewClient(…) or any redis.UniversalClient")
	}
	if cfg.Namespace == "" {
		cfg.Namespace = defaultNamespace
	}
	if !validName(cfg.Namespace) {
		problem("Namespace %q: use letters, digits, '.', '_' and '-'", shorten(cfg.Namespace))
	}
	setDefault(&cfg.MaxArgsBytes, defaultMaxArgsBytes, "MaxArgsBytes", problem)
	setDefault(&cfg.MaxWaitConns, defaultMaxWaitConns, "MaxWaitConns", problem)
	setDefault(&cfg.IDWindow, defaultIDWindow, "IDWindow", problem)
	if len(problems) > 0 {
		return nil, fmt.Errorf("%w client: %w", ErrInvalid, errors.Join(problems...))
	}
	c := &Client{cfg: cfg, rdb: rdb, keys: newKeyspace(cfg.Namespace), registered: map[string]time.Time{}}
	c.waits = newWaits(c)
	c.lanes = newSendLanes(rdb)
	c.enqueuer, c.collector = EnqueueFunc(c.send), EnqueueFunc(c.collect)
	for _, wrap := range slices.Backward(cfg.Middleware) {
		c.enqueuer, c.collector = wrap(c.enqueuer), wrap(c.collector)
	}
	return c, nil
}

// Close ends the connections that waits have opened. Waits under way end with an error. The Redis client that NewClient
// was given stays open.
func (c *Client) Close() error { return c.waits.close() }

// Enqueue sends one job; generated wrappers call it. It is sent once: where the reply was lost the error matches
// ErrUnconfirmed and the id is returned beside it. Other errors: ErrInvalid, ErrTooLarge, ctx's error, or Redis's; then
// nothing was enqueued.
func (c *Client) Enqueue(ctx context.Context, job Job) (JobID, error) {
	if c == nil || c.rdb == nil {
		return JobID{}, invalidf("client: make one with NewClient")
	}
	return c.enqueuer.Enqueue(ctx, job)
}

// enqueueEncoded is Enqueue for a job whose arguments are known to be JSON. Middleware may change them.
func (c *Client) enqueueEncoded(ctx context.Context, job Job) (JobID, error) {
	if c.rdb == nil || len(c.cfg.Middleware) > 0 {
		return c.Enqueue(ctx, job)
	}
	return c.sendChecked(ctx, job, true)
}

func (c *Client) send(ctx context.Context, job Job) (JobID, error) {
	return c.sendChecked(ctx, job, false)
}

func (c *Client) sendChecked(ctx context.Context, job Job, encoded bool) (JobID, error) {
	var o outgoing
	if err := c.prepare(ctx, &o, job, !job.ID.IsZero(), encoded); err != nil {
		return JobID{}, err
	}
	if err := c.register(ctx, o.job.Queue); err != nil {
		return JobID{}, enqueueError(&o.job, err, false)
	}
	point("enqueue-ready")
	lane := c.lanes.of(o.job.Queue)
	sent, err := lane.send(ctx, o.cmd)
	if sent && err != nil && o.cmd.script && redis.HasErrorPrefix(err, "NOSCRIPT") { // nothing ran, so sending it whole is its first run
		o.cmd = o.cmd.whole(ctx)
		sent, err = lane.send(ctx, o.cmd)
	}
	if !sent {
		return JobID{}, fmt.Errorf("smallage: enqueue %s: %w", o.job.Task, err)
	}
	return c.sent(&o, err)
}

// outgoing is a job on its way to Redis.
type outgoing struct {
	job Job
	cmd *onceCmd
}

// prepare checks a job and makes its command. brought says that the caller chose the job's id, so that enqueuing it is
// idempotent; encoded, that the arguments are known to be JSON.
func (c *Client) prepare(ctx context.Context, o *outgoing, job Job, brought, encoded bool) (err error) {
	o.job = job
	if encoded {
		err = o.job.checkEncoded()
	} else {
		err = o.job.check()
	}
	if err != nil {
		return err
	}
	if len(job.Args) > c.cfg.MaxArgsBytes {
		return tooLarge(&o.job, c.cfg.MaxArgsBytes)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("smallage: enqueue %s: %w", job.Task, err)
	}
	if job.ID.IsZero() {
		if o.job.ID, err = NewJobID(); err != nil {
			return err
		}
	}
	o.cmd, err = c.command(ctx, &o.job, brought)
	return err
}

// sent tells what came of a command that was sent. A reply that cannot be looked at any more counts as none.
func (c *Client) sent(o *outgoing, err error) (JobID, error) {
	job := &o.job
	if err != nil {
		if err := enqueueError(job, err, true); errors.Is(err, ErrUnconfirmed) {
			return job.ID, err
		} else {
			return JobID{}, err
		}
	}
	stored := !o.cmd.script || replyNumber(o.cmd.Val()) == 1
	if stored && job.ResultTTL == 0 {
		c.silent.add(job.ID)
	}
	if stored && c.cfg.Observer != nil {
		c.cfg.Observer.Observe(Event{Kind: EventEnqueued, Job: JobInfo{
			ID: job.ID, Task: job.Task, Queue: job.Queue, Attempt: 1, Headers: job.Headers,
		}})
	}
	point("enqueued")
	return job.ID, nil
}

// command is a bare XADD for a job that runs now, and a script for one that a bare XADD cannot express.
func (c *Client) command(ctx context.Context, job *Job, brought bool) (*onceCmd, error) {
	k := c.keys.queue(job.Queue)
	delay, at := max(job.Delay.Milliseconds(), 0), int64(0)
	if job.Delay > 0 && delay == 0 {
		delay = 1
	}
	if !job.At.IsZero() {
		at = max(job.At.UnixMilli(), 1)
	}
	id := job.ID.String()
	script := brought || delay > 0 || at > 0 || job.ExpiresIn > 0
	size := 15 // of a plain job
	if job.Dedup != "" || job.ResultTTL > 0 || len(job.Headers) > 0 {
		size += 6
	}
	if script {
		size += 10
	}
	args := make([]any, 0, size)
	if script {
		window, marker := int64(0), k.stream
		if brought {
			window, marker = c.cfg.IDWindow.Milliseconds(), k.id+id
		}
		args = append(args, "EVALSHA", enqueueScript.sha, 4, k.stream, k.delayed, k.delayedJobs, marker,
			id, window, delay, at, job.ExpiresIn.Milliseconds(), tickEvery.Milliseconds())
	} else {
		args = append(args, "XADD", k.stream, "*")
	}
	args, err := appendFields(args, job, id, time.Now())
	if err != nil {
		return nil, err
	}
	cmd := sendOnce(ctx, args, script)
	cmd.size = len(job.Args) + len(job.Dedup) + 200*(1+len(job.Headers))
	return cmd, nil
}

// onceCmd is a command that go-redis must not send again by itself: its first sending may have worked.
type onceCmd struct {
	*redis.Cmd
	script bool
	size   int // in bytes, roughly
}

// NoRetry keeps go-redis from sending the command again after an error.
func (*onceCmd) NoRetry() bool { return true }

// outcome is the command's error. A flush that breaks off gives its error to all of its commands, also to those whose
// reply had come: they have worked.
func (c *onceCmd) outcome() error {
	if c.Val() != nil {
		return nil
	}
	return c.Err()
}

func (c *onceCmd) unknownScript() bool {
	return c.script && c.Val() == nil && redis.HasErrorPrefix(c.Err(), "NOSCRIPT")
}

// whole is the same command with the script's text, for a server that does not know it.
func (c *onceCmd) whole(ctx context.Context) *onceCmd {
	again := sendOnce(ctx, append([]any{"EVAL", enqueueScript.source}, c.Args()[2:]...), true)
	again.size = c.size
	return again
}

func sendOnce(ctx context.Context, args []any, script bool) *onceCmd {
	cmd := redis.NewCmd(ctx, args...)
	if script {
		cmd.SetFirstKeyPos(3)
	}
	return &onceCmd{Cmd: cmd, script: script}
}

// enqueueError tells a job that was not enqueued from one that may have been.
func enqueueError(job *Job, err error, sent bool) error {
	var answer redis.Error
	var dial *net.OpError
	switch {
	case errors.As(err, &answer):
		return fmt.Errorf("smallage: enqueue %s on queue %s: Redis refused: %w", job.Task, job.Queue, err)
	case !sent, errors.As(err, &dial) && dial.Op == "dial", errors.Is(err, redis.ErrClosed), errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted):
		return fmt.Errorf("smallage: enqueue %s on queue %s: nothing was sent; is Redis running and reachable? %w", job.Task, job.Queue, err)
	}
	return fmt.Errorf("%w: job %s of %s on queue %s was sent, but no reply came; it may be in the queue (%w)",
		ErrUnconfirmed, job.ID, job.Task, job.Queue, err)
}

// register names the queue in the registry now and then, so that operators find every queue; FLUSHALL forgets it.
func (c *Client) register(ctx context.Context, queue string) error {
	c.mu.Lock()
	due := time.Since(c.registered[queue]) > registerEvery
	c.mu.Unlock()
	if !due {
		return nil
	}
	if err := c.rdb.SAdd(ctx, c.keys.registry(), queue).Err(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.registered[queue] = time.Now()
	return nil
}

func atoi(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}
