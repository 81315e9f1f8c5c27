package main

import (
	"context"
	"log/slog"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// riverQueue is river with its defaults on PostgreSQL with its defaults: durable, unlike Redis without persistence.
type riverQueue struct {
	o      *order
	pool   *pgxpool.Pool
	client *river.Client[pgx.Tx]
}

type riverArgs struct {
	DocID uuid.UUID `json:"docID"`
}

func (riverArgs) Kind() string { return "noop" }

type riverWorker struct {
	river.WorkerDefaults[riverArgs]
	handle func(uuid.UUID)
}

func (w *riverWorker) Work(_ context.Context, job *river.Job[riverArgs]) error {
	w.handle(job.Args.DocID)
	return nil
}

func (q *riverQueue) open(ctx context.Context, o *order) error {
	q.o = o
	if o.Postgres == "" {
		return errUnsupported
	}
	cfg, err := pgxpool.ParseConfig(o.Postgres)
	if err != nil {
		return err
	}
	cfg.MaxConns = 40
	if q.pool, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return err
	}
	migrator, err := rivermigrate.New(riverpgxv5.New(q.pool), &rivermigrate.Config{Logger: quiet})
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	q.client, err = river.NewClient(riverpgxv5.New(q.pool), &river.Config{Logger: quiet})
	return err
}

var quiet = slog.New(slog.DiscardHandler)

func (q *riverQueue) reset(ctx context.Context) error {
	_, err := q.pool.Exec(ctx, "TRUNCATE river_job")
	return err
}

func (q *riverQueue) close() {
	if q.pool != nil {
		q.pool.Close()
	}
}

func (q *riverQueue) enqueue(ctx context.Context, id uuid.UUID) error {
	_, err := q.client.Insert(ctx, riverArgs{id}, nil)
	return err
}

func (q *riverQueue) batch(ctx context.Context, ids []uuid.UUID) error {
	params := make([]river.InsertManyParams, len(ids))
	for i, id := range ids {
		params[i].Args = riverArgs{id}
	}
	_, err := q.client.InsertManyFast(ctx, params)
	return err
}

func (q *riverQueue) work(ctx context.Context, handle func(uuid.UUID)) error {
	workers := river.NewWorkers()
	river.AddWorker(workers, &riverWorker{handle: handle})
	client, err := river.NewClient(riverpgxv5.New(q.pool), &river.Config{
		Queues:  map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: q.o.Concurrency}},
		Workers: workers, Logger: quiet,
	})
	if err != nil {
		return err
	}
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	<-ctx.Done()
	return client.Stop(context.WithoutCancel(ctx))
}

func (q *riverQueue) ask(context.Context, uuid.UUID) error  { return errUnsupported }
func (q *riverQueue) park(context.Context, uuid.UUID) error { return errUnsupported }
