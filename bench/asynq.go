package main

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/hibiken/asynq"
)

// asynqQueue is asynq with its defaults.
type asynqQueue struct {
	o         *order
	client    *asynq.Client
	inspector *asynq.Inspector
}

func (q *asynqQueue) at() asynq.RedisClientOpt {
	return asynq.RedisClientOpt{Addr: q.o.Redis[0], PoolSize: 100}
}

func (q *asynqQueue) open(_ context.Context, o *order) error {
	q.o = o
	q.client, q.inspector = asynq.NewClient(q.at()), asynq.NewInspector(q.at())
	return nil
}

func (q *asynqQueue) reset(context.Context) error { return nil }

func (q *asynqQueue) close() {
	_ = q.client.Close()
	_ = q.inspector.Close()
}

func (q *asynqQueue) enqueue(ctx context.Context, id uuid.UUID) error {
	var opts []asynq.Option
	if q.o.Features.Result {
		opts = append(opts, asynq.Retention(resultTTL))
	}
	_, err := q.client.EnqueueContext(ctx, asynq.NewTask("noop", id[:]), opts...)
	return err
}

func (q *asynqQueue) batch(context.Context, []uuid.UUID) error { return errUnsupported }

func (q *asynqQueue) work(ctx context.Context, handle func(uuid.UUID)) error {
	server := asynq.NewServer(q.at(), asynq.Config{Concurrency: q.o.Concurrency, LogLevel: asynq.FatalLevel})
	err := server.Start(asynq.HandlerFunc(func(_ context.Context, t *asynq.Task) error {
		if q.o.Features.Result {
			if _, err := t.ResultWriter().Write([]byte("ok")); err != nil {
				return err
			}
		}
		handle(uuid.UUID(t.Payload()))
		return nil
	}))
	if err != nil {
		return err
	}
	<-ctx.Done()
	server.Shutdown()
	return nil
}

// ask polls: asynq has no other way to learn of a result.
func (q *asynqQueue) ask(ctx context.Context, id uuid.UUID) error {
	info, err := q.client.EnqueueContext(ctx, asynq.NewTask("noop", id[:]), asynq.Retention(resultTTL))
	if err != nil {
		return err
	}
	for {
		now, err := q.inspector.GetTaskInfo(info.Queue, info.ID)
		if err != nil && !errors.Is(err, asynq.ErrTaskNotFound) {
			return err
		}
		if err == nil && now.State == asynq.TaskStateCompleted {
			return nil
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (q *asynqQueue) park(context.Context, uuid.UUID) error { return errUnsupported }
