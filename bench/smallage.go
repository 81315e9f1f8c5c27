package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/smallage/smallage/bench/tasks"
	smallage "github.com/smallage/smallage/runtime"
)

// smallageQueue is Smallage through its generated code.
type smallageQueue struct {
	o      *order
	rdb    redis.UniversalClient
	client *smallage.Client
}

func (q *smallageQueue) open(_ context.Context, o *order) (err error) {
	q.o, q.rdb = o, redis.NewUniversalClient(&redis.UniversalOptions{Addrs: o.Redis, PoolSize: 100, IsClusterMode: o.Features.Cluster})
	q.client, err = smallage.NewClient(q.rdb, smallage.ClientConfig{})
	return err
}

func (q *smallageQueue) reset(context.Context) error { return nil }

func (q *smallageQueue) close() {
	_ = q.client.Close()
	_ = q.rdb.Close()
}

func (q *smallageQueue) send(ctx context.Context, to smallage.Enqueuer, id uuid.UUID) (smallage.JobID, error) {
	f := q.o.Features
	if f.Timeout {
		return tasks.TimedEnqueue(ctx, to, id)
	}
	if !f.Dedup && !f.Result && len(q.o.Queues) == 0 {
		return tasks.NoopEnqueue(ctx, to, id)
	}
	var opts []smallage.Option[tasks.NoopArgs]
	if f.Dedup {
		opts = append(opts, tasks.NoopWith.Dedup("noop:"+id.String()))
	}
	if f.Result {
		opts = append(opts, tasks.NoopWith.ResultTTL(resultTTL))
	}
	if n := len(q.o.Queues); n > 0 {
		opts = append(opts, tasks.NoopWith.Queue(q.o.Queues[number(id)%n]))
	}
	return tasks.NoopEnqueue(ctx, to, id, opts...)
}

func (q *smallageQueue) enqueue(ctx context.Context, id uuid.UUID) error {
	_, err := q.send(ctx, q.client, id)
	return err
}

func (q *smallageQueue) batch(ctx context.Context, ids []uuid.UUID) error {
	var batch smallage.Batch
	for _, id := range ids {
		if _, err := q.send(ctx, &batch, id); err != nil {
			return err
		}
	}
	return q.client.EnqueueBatch(ctx, &batch)
}

func (q *smallageQueue) work(ctx context.Context, handle func(uuid.UUID)) error {
	f := q.o.Features
	cfg := smallage.WorkerConfig{
		Concurrency: q.o.Concurrency, DedupTTL: dedupTTL,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	if len(q.o.Queues) > 0 {
		cfg.Queues = map[string]int{}
		for _, name := range q.o.Queues {
			cfg.Queues[name] = 1
		}
	}
	if f.Heartbeat {
		cfg.Lease = 400 * time.Millisecond
	}
	if f.Middleware {
		for range 3 {
			cfg.Middleware = append(cfg.Middleware, func(next smallage.Handler) smallage.Handler {
				return func(ctx context.Context, job smallage.JobInfo) ([]byte, error) { return next(ctx, job) }
			})
		}
	}
	if f.Counters {
		cfg.Observer = &counters{}
	}
	if !f.Telemetry {
		return q.run(ctx, cfg, handle)
	}
	t, err := newTelemetry()
	if err != nil {
		return err
	}
	cfg.Observer, cfg.Middleware = t, append(cfg.Middleware, t.trace)
	var ran atomic.Int64
	err = q.run(ctx, cfg, func(id uuid.UUID) {
		ran.Add(1)
		handle(id)
	})
	return errors.Join(err, t.verify(context.WithoutCancel(ctx), ran.Load()))
}

func (q *smallageQueue) run(ctx context.Context, cfg smallage.WorkerConfig, handle func(uuid.UUID)) error {
	worker, err := smallage.NewWorker(q.rdb, cfg, tasks.Dispatch(handle))
	if err != nil {
		return err
	}
	return worker.Run(ctx)
}

// counters is the least that an observer does: a count for each kind of event and the time that handlers took.
type counters struct {
	mu     sync.Mutex
	events map[smallage.EventKind]int
	took   time.Duration
}

func (c *counters) Observe(e smallage.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.events == nil {
		c.events = map[smallage.EventKind]int{}
	}
	c.events[e.Kind]++
	c.took += e.Took
}

func (q *smallageQueue) ask(ctx context.Context, id uuid.UUID) error {
	job, err := tasks.NoopEnqueue(ctx, q.client, id, tasks.NoopWith.ResultTTL(resultTTL))
	if err != nil {
		return err
	}
	res, err := q.client.Wait(ctx, job, 10*time.Second)
	if err != nil {
		return err
	}
	return res.Err()
}

func (q *smallageQueue) park(ctx context.Context, id uuid.UUID) error {
	job, err := tasks.NoopEnqueue(ctx, q.client, id, tasks.NoopWith.ResultTTL(resultTTL), tasks.NoopWith.Delay(time.Hour))
	if err != nil {
		return err
	}
	go func() {
		_, err := q.client.Wait(ctx, job, time.Hour)
		if err == nil || !errors.Is(err, context.Canceled) {
			slog.Error("a parked wait ended", "error", err)
		}
	}()
	return nil
}
