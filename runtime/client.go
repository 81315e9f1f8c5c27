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

// checkRedis names what is wrong with a Redis client that an application brings.
func checkRedis(rdb redis.UniversalClient, problem func(format string, args ...any)) {
	if isNil(rdb) {
		problem("Redis client: it is nil; pass redis.NewClient(…), or a client of Redis Cluster or of Sentinel")
	} else if _, ring := rdb.(*redis.Ring); ring {
		problem("Redis client: it is a redis.Ring, which has no notices across its servers; pass redis.NewClient(…), or a client of Redis Cluster or of Sentinel")
	}
}

// NewClient checks the configuration and returns a client. rdb is one of a single server, of Sentinel or of
// Redis Cluster; NewClient does not talk to it. Errors match ErrInvalid.
func NewClient(rdb redis.UniversalClient, cfg ClientConfig) (*Client, error) {
	var problems []error
	problem := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	checkRedis(rdb, problem)
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

// Close ends the connections that waits have opened, and gives back what the client holds of the Redis client that
// NewClient was given, which stays open. Waits under way end with an error.
func (c *Client) Close() error {
	c.lanes.rest()
	return c.waits.close()
}

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
	cmd, err := c.prepare(ctx, &job, &commandRoom{}, !job.ID.IsZero(), encoded)
	if err != nil {
		return JobID{}, err
	}
	if err := c.register(ctx, job.Queue); err != nil {
		return JobID{}, enqueueError(&job, err, false)
	}
	point("enqueue-ready")
	lane := c.lanes.of(job.Queue)
	sent, err := lane.send(ctx, cmd)
	if sent && err != nil && cmd.script && redis.HasErrorPrefix(err, "NOSCRIPT") { // nothing ran, so sending it whole is its first run
		cmd.setWhole(ctx)
		sent, err = lane.send(ctx, cmd)
	}
	if !sent {
		return JobID{}, fmt.Errorf("smallage: enqueue %s: %w", job.Task, err)
	}
	return c.sent(&job, cmd, err)
}

// prepare checks a job, gives it an id and makes its command. brought says that the caller chose the job's id, so that
// enqueuing it is idempotent; encoded, that the arguments are known to be JSON.
func (c *Client) prepare(ctx context.Context, job *Job, room *commandRoom, brought, encoded bool) (*onceCmd, error) {
	var err error
	if encoded { // called by name: through a variable each job would move to the heap
		err = job.checkEncoded()
	} else {
		err = job.check()
	}
	if err != nil {
		return nil, err
	}
	if len(job.Args) > c.cfg.MaxArgsBytes {
		return nil, tooLarge(job, c.cfg.MaxArgsBytes)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("smallage: enqueue %s: %w", job.Task, err)
	}
	if job.ID.IsZero() {
		if job.ID, err = NewJobID(); err != nil {
			return nil, err
		}
	}
	return c.command(ctx, job, room, brought)
}

// sent tells what came of a command that was sent. A reply that cannot be looked at any more counts as none.
func (c *Client) sent(job *Job, cmd *onceCmd, err error) (JobID, error) {
	if err != nil {
		if err := enqueueError(job, err, true); errors.Is(err, ErrUnconfirmed) {
			return job.ID, err
		} else {
			return JobID{}, err
		}
	}
	stored := !cmd.script || cmd.Val() == "1"
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
