package crashtest

import (
	"context"
	"errors"
	"os"
	"time"

	smallage "github.com/smallage/smallage/runtime"
)

// Args are what every task of the tests takes.
type Args struct {
	Key string `json:"key"` // of the side effect: the dedup key, where there is one
	Nap int    `json:"nap"` // how long the handler takes, in ms
}

// With makes the options of the tasks.
var With smallage.With[Args]

// The tasks. All live in one queue, so that they get in each other's way.
var (
	Plain      = task("crash.Plain")
	FailOnce   = task("crash.FailOnce")
	FailAlways = task("crash.FailAlways")
	Value      = task("crash.Value")
	Poison     = task("crash.Poison") // kills its process

	// The first delivery of these ignores its context. Later ones take twice as long and succeed.
	StubbornLast  = stubborn("crash.StubbornLast", 1)  // fails its only attempt
	StubbornRetry = stubborn("crash.StubbornRetry", 3) // fails, with attempts left
	StubbornOK    = stubborn("crash.StubbornOK", 1)    // succeeds
)

// Queue is the tasks' queue.
const Queue = "crash"

func task(name string) *smallage.Task[Args] {
	return &smallage.Task[Args]{Name: name, Queue: Queue, Attempts: 3, Backoff: 50 * time.Millisecond, BackoffMax: time.Second}
}

func stubborn(name string, attempts int) *smallage.Task[Args] {
	t := task(name)
	t.Attempts = attempts
	return t
}

// ErrWanted is what failing handlers return.
var ErrWanted = errors.New("this run fails")

// Table ties the tasks to handlers that write into the ledger.
func Table(ledger *Ledger) smallage.Table {
	handler := func(run func(ctx context.Context, job smallage.JobInfo) ([]byte, error)) func(context.Context, Args) ([]byte, error) {
		return func(ctx context.Context, args Args) ([]byte, error) {
			job, _ := smallage.InfoFromContext(ctx)
			ledger.Write(Started, job, args.Key, "")
			if err := nap(ctx, time.Duration(args.Nap)*time.Millisecond); err != nil {
				return nil, err
			}
			value, err := run(ctx, job)
			if err != nil {
				ledger.Write(Failed, job, args.Key, "")
				return nil, err
			}
			ledger.Write(Effect, job, args.Key, "")
			return value, nil
		}
	}
	late := func(first error) func(context.Context, Args) error {
		return func(ctx context.Context, args Args) error {
			job, _ := smallage.InfoFromContext(ctx)
			ledger.Write(Started, job, args.Key, "")
			length := time.Duration(args.Nap) * time.Millisecond
			if job.Delivery == 1 {
				time.Sleep(length)
				if first != nil {
					ledger.Write(Failed, job, args.Key, "")
					return first
				}
			} else if err := nap(ctx, 2*length); err != nil {
				return err
			}
			ledger.Write(Effect, job, args.Key, "")
			return nil
		}
	}
	return smallage.NewTable(
		smallage.HandleValue(Plain, handler(func(context.Context, smallage.JobInfo) ([]byte, error) { return nil, nil })),
		smallage.HandleValue(FailOnce, handler(func(_ context.Context, job smallage.JobInfo) ([]byte, error) {
			if job.Attempt == 1 {
				return nil, ErrWanted
			}
			return nil, nil
		})),
		smallage.HandleValue(FailAlways, handler(func(context.Context, smallage.JobInfo) ([]byte, error) { return nil, ErrWanted })),
		smallage.HandleValue(Value, handler(func(_ context.Context, job smallage.JobInfo) ([]byte, error) {
			return []byte(job.ID.String()), nil
		})),
		smallage.Handle(StubbornLast, late(ErrWanted)),
		smallage.Handle(StubbornRetry, late(ErrWanted)),
		smallage.Handle(StubbornOK, late(nil)),
		smallage.HandleValue(Poison, handler(func(context.Context, smallage.JobInfo) ([]byte, error) {
			self, err := os.FindProcess(os.Getpid())
			if err == nil {
				err = self.Kill()
			}
			if err == nil {
				select {} // until the signal arrives
			}
			return nil, err
		})),
	)
}

func nap(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
