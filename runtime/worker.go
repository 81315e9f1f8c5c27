package smallage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// WorkerConfig says how a worker works. Its zero value works.
type WorkerConfig struct {
	// Queues are the queues to read, each with its weight: of two full queues with weights 3 and 1, the first gets three
	// jobs of four. nil: the queues of the tables' tasks, with equal weights. Weights are at least 1.
	Queues map[string]int

	// StrictPriority makes the weights an order: a queue's jobs start only while no queue of a higher weight has any.
	StrictPriority bool

	// Concurrency is how many jobs run at once; 0: 10. At most twice as many, plus one per queue, are held at a time, and
	// as many again whose handlers have returned and whose endings are on the way to Redis.
	Concurrency int

	// Lease is how long a job stays with a worker that no longer answers; 0: 30 s, at least 300 ms. It is renewed for as
	// long as the worker lives, so it bounds no handler.
	Lease time.Duration

	// DedupTTL is the window of dedup keys: how long after a job is done another with its key is a duplicate; 0: 24 h.
	// Choose it to cover the longest period over which a repeat would be wrong, not the longest that a job takes.
	DedupTTL time.Duration

	// MaxDeliveries is how often a job may be lost with its worker before it is dead with ReasonDeliveries; 0: 5. A job
	// that was lost twice, or once where this is 2, is run apart from others of its kind, so that one which kills its
	// workers takes no other along. With 1 whatever a lost worker held is dead.
	MaxDeliveries int

	// DrainTimeout is how long running jobs may go on once Run's context has ended; 0: 30 s. Then their contexts are
	// cancelled, and a second later they are handed back.
	DrainTimeout time.Duration

	// UnknownTaskTTL is how long a job whose task no worker knows is put back before it is dead with ReasonUnknownTask,
	// so that a deployment may roll; 0: 6 h.
	UnknownTaskTTL time.Duration

	// MaxValueBytes is the largest value kept as a result; 0: 1 MiB. The job of a larger one is done, but its outcome is
	// failed with ReasonValue.
	MaxValueBytes int

	// MaxDead is how many dead jobs each queue keeps; 0: 100,000. The oldest are dropped, with a log line and an event.
	MaxDead int

	// MaxDeadAge is how long dead jobs are kept; 0: for ever. Older ones are dropped, with a log line and an event.
	MaxDeadAge time.Duration

	// Namespace begins every Redis key; empty: smallage. Letters, digits, '.', '_' and '-'.
	Namespace string

	// Name is the worker's name in Redis and in histories; empty: the host's name. A random part is added for each Run.
	Name string

	// Logger gets what an operator must know; nil: slog.Default.
	Logger *slog.Logger

	// Observer is told of each job's life; nil costs nothing.
	Observer Observer

	// Middleware wraps every handler, the first outermost.
	Middleware []func(Handler) Handler
}

const (
	defaultConcurrency    = 10
	defaultLease          = 30 * time.Second
	defaultDedupTTL       = 24 * time.Hour
	defaultMaxDeliveries  = 5
	defaultDrainTimeout   = 30 * time.Second
	defaultUnknownTaskTTL = 6 * time.Hour
	defaultMaxValueBytes  = 1 << 20
	defaultMaxDead        = 100_000

	shortestLease = 300 * time.Millisecond
	tickEvery     = time.Second     // how often a worker looks at each queue by itself
	longestBlock  = 2 * time.Second // of one blocking read; where the server cannot unblock it, a stop waits for it
	promoteLimit  = 500             // delayed jobs moved by one script
	giveUpAfter   = time.Second     // from the cancel of the handlers to their hand-back
)

// Worker runs the jobs of its tables' tasks. It is made by NewWorker and does nothing until Run.
type Worker struct {
	cfg     WorkerConfig
	rdb     redis.UniversalClient
	keys    *keyspace
	tasks   map[string]*Entry
	queues  []string // sorted: heaviest first, then by name
	log     *slog.Logger
	running atomic.Bool
}

// NewWorker checks the configuration and the tables and returns a worker. It does not talk to Redis: Run does, and
// waits for it where it is away. Everything that cannot work is named in one error that matches ErrInvalid: a nil client
// or dependency, an empty table, a task name or alias that two tables claim, a setting out of range.
func NewWorker(rdb redis.UniversalClient, cfg WorkerConfig, tables ...Table) (*Worker, error) {
	var problems []error
	problem := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	checkRedis(rdb, problem)
	w := &Worker{rdb: rdb, tasks: map[string]*Entry{}}
	w.addTables(tables, problem)
	w.configure(cfg, problem)
	if len(problems) > 0 {
		return nil, fmt.Errorf("%w worker: %w", ErrInvalid, errors.Join(problems...))
	}
	return w, nil
}

func (w *Worker) addTables(tables []Table, problem func(string, ...any)) {
	if len(tables) == 0 {
		problem("tables: there is none; pass what a generated Dispatch returns")
	}
	for i, table := range tables {
		if len(table.entries) == 0 {
			problem("table %d: it has no task; pass what a generated Dispatch returns", i+1)
		}
		for _, need := range table.needs {
			if isNil(need.value) {
				problem("dependency %s of table %d: it is nil; pass the real one to Dispatch", need.name, i+1)
			}
		}
		for _, entry := range table.entries {
			if entry.name == "" || entry.prepare == nil {
				problem("table %d: an entry without a task; make entries with Handle, HandleValue or HandleBinary", i+1)
				continue
			}
			for _, name := range append([]string{entry.name}, entry.aliases...) {
				if other, taken := w.tasks[name]; taken {
					problem("task name %q: claimed by %s and by %s; give one of them another name= or aliases=", name, other.name, entry.name)
					continue
				}
				w.tasks[name] = &entry
			}
		}
	}
}

func (w *Worker) configure(cfg WorkerConfig, problem func(string, ...any)) {
	cfg.Queues = maps.Clone(cfg.Queues)
	if cfg.Queues == nil {
		cfg.Queues = map[string]int{}
		for _, entry := range w.tasks {
			cfg.Queues[entry.queue] = 1
		}
	} else if len(cfg.Queues) == 0 {
		problem("Queues: the map is empty; leave it nil to read the queues of the tables' tasks")
	}
	for name, weight := range cfg.Queues {
		if !validName(name) {
			problem("queue name %q: use letters, digits, '.', '_' and '-', at least one", shorten(name))
		}
		if weight < 1 {
			problem("weight %d of queue %q: use 1 or more; leave a queue out to not read it", weight, shorten(name))
		}
		w.queues = append(w.queues, name)
	}
	slices.SortFunc(w.queues, func(a, b string) int {
		if d := cfg.Queues[b] - cfg.Queues[a]; d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	setDefault(&cfg.Concurrency, defaultConcurrency, "Concurrency", problem)
	setDefault(&cfg.Lease, defaultLease, "Lease", problem)
	setDefault(&cfg.DedupTTL, defaultDedupTTL, "DedupTTL", problem)
	setDefault(&cfg.MaxDeliveries, defaultMaxDeliveries, "MaxDeliveries", problem)
	setDefault(&cfg.DrainTimeout, defaultDrainTimeout, "DrainTimeout", problem)
	setDefault(&cfg.UnknownTaskTTL, defaultUnknownTaskTTL, "UnknownTaskTTL", problem)
	setDefault(&cfg.MaxValueBytes, defaultMaxValueBytes, "MaxValueBytes", problem)
	setDefault(&cfg.MaxDead, defaultMaxDead, "MaxDead", problem)
	if cfg.MaxDeadAge < 0 {
		problem("MaxDeadAge %v: it is negative; leave it 0 to keep dead jobs for ever", cfg.MaxDeadAge)
	}
	if cfg.Lease < shortestLease {
		problem("Lease %v: a worker must be able to renew it three times before it ends; use at least %v", cfg.Lease, shortestLease)
	}
	if cfg.DedupTTL < time.Millisecond {
		problem("DedupTTL %v: use at least 1ms", cfg.DedupTTL)
	}
	if cfg.Namespace == "" {
		cfg.Namespace = defaultNamespace
	}
	if !validName(cfg.Namespace) {
		problem("Namespace %q: use letters, digits, '.', '_' and '-'", shorten(cfg.Namespace))
	}
	if cfg.Name == "" {
		cfg.Name = hostName()
	}
	if !validName(cfg.Name) {
		problem("Name %q: use letters, digits, '.', '_' and '-'", shorten(cfg.Name))
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	w.cfg, w.log, w.keys = cfg, cfg.Logger, newKeyspace(cfg.Namespace)
}

// harmlessDeliveries is how often an entry may be delivered before it is suspected of killing workers.
func (c *WorkerConfig) harmlessDeliveries() int { return max(1, min(2, c.MaxDeliveries-1)) }

func setDefault[T int | time.Duration](field *T, value T, name string, problem func(string, ...any)) {
	switch {
	case *field == 0:
		*field = value
	case *field < 0:
		problem("%s %v: it is negative; leave it 0 for %v", name, *field, value)
	}
}

func hostName() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		return "worker"
	}
	clean := []byte(host)
	for i, c := range clean {
		if !validName(string(c)) {
			clean[i] = '-'
		}
	}
	return string(clean[:min(len(clean), 100)])
}

// Run reads and runs jobs until ctx ends, then drains: it stops reading, hands back at once what has not started, lets
// running handlers go on for DrainTimeout, cancels their contexts, waits one more second, hands back what still runs
// and returns nil. A handler that is handed back may overlap with its next run elsewhere. While Redis is away Run goes
// on trying. A handler may end ctx itself. Run may be called again after it returned, but not twice at once: that is an
// error that matches ErrInvalid.
func (w *Worker) Run(ctx context.Context) error {
	if w == nil || w.rdb == nil {
		return invalidf("worker: make one with NewWorker")
	}
	if !w.running.CompareAndSwap(false, true) {
		return invalidf("worker: Run is running already; make another worker for more, or raise Concurrency")
	}
	defer w.running.Store(false)
	return newSession(w, ctx).run(ctx)
}
