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
	Stubborn   = lastChance("crash.Stubborn")
)

// Queue is the tasks' queue.
const Queue = "crash"

func task(name string) *smallage.Task[Args] {
	return &smallage.Task[Args]{Name: name, Queue: Queue, Attempts: 3, Backoff: 50 * time.Millisecond, BackoffMax: time.Second}
}

// lastChance has one attempt. Its first delivery ignores its context and fails, later ones take twice as long and
// succeed.
func lastChance(name string) *smallage.Task[Args] {
	t := task(name)
	t.Attempts = 1
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
		smallage.Handle(Stubborn, func(ctx context.Context, args Args) error {
			job, _ := smallage.InfoFromContext(ctx)
			ledger.Write(Started, job, args.Key, "")
			length := time.Duration(args.Nap) * time.Millisecond
			if job.Delivery == 1 {
				time.Sleep(length)
				ledger.Write(Failed, job, args.Key, "")
				return ErrWanted
			}
			if err := nap(ctx, 2*length); err != nil {
				return err
			}
			ledger.Write(Effect, job, args.Key, "")
			return nil
		}),
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
