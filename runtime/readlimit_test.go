package smallage_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/smallage/smallage/internal/redistest"
	smallage "github.com/smallage/smallage/runtime"
)

// readsWithFlushes counts the reads that go behind an acknowledge.
type readsWithFlushes struct{ count atomic.Int64 }

func (r *readsWithFlushes) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r *readsWithFlushes) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (r *readsWithFlushes) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		scripts := false
		for _, cmd := range cmds {
			scripts = scripts || cmd.Name() == "evalsha"
			if scripts && cmd.Name() == "xreadgroup" {
				r.count.Add(1)
			}
		}
		return next(ctx, cmds)
	}
}

func TestABusyWorkerReadsOnBehindItsEndingsAndHoldsNoMoreThanItMay(t *testing.T) {
	t.Parallel()
	rdb, reads := redistest.Shared(t).Client(), &readsWithFlushes{}
	rdb.AddHook(reads)
	b := newBenchOn(t, rdb)
	ctx := context.Background()
	const jobs, concurrency = 20_000, 5
	var batch smallage.Batch
	for i := range jobs {
		_, err := echo.Enqueue(ctx, &batch, textArgs{fmt.Sprint(i)}, nil)
		require.NoError(t, err)
	}
	require.NoError(t, b.client.EnqueueBatch(ctx, &batch))
	seen := make([]atomic.Int32, jobs)
	var ran atomic.Int64
	stop := b.work(smallage.WorkerConfig{Concurrency: concurrency}, echoTable(func(_ context.Context, text string) ([]byte, error) {
		var n int
		_, err := fmt.Sscan(text, &n)
		seen[n].Add(1)
		ran.Add(1)
		return nil, err
	}))
	looks := redistest.Shared(t).Client()
	for ran.Load() < jobs {
		pending, err := looks.XPending(ctx, b.key("echo", "stream"), "workers").Result()
		if err == nil { // the worker makes the group
			require.LessOrEqual(t, pending.Count, int64(2*concurrency+1))
		}
		time.Sleep(time.Millisecond)
	}
	stop()
	for i := range seen {
		require.EqualValues(t, 1, seen[i].Load(), "job %d", i)
	}
	require.Zero(t, looks.XLen(ctx, b.key("echo", "stream")).Val())
	require.Greater(t, reads.count.Load(), int64(jobs/concurrency/20), "a good part of the reads goes with flushes")
}

func TestAWorkerThatStopsInABacklogHandsBackWhatItHasRead(t *testing.T) {
	t.Parallel()
	b := newBenchOn(t, redistest.Shared(t).Client())
	ctx := context.Background()
	const jobs = 3000
	var batch smallage.Batch
	for range jobs {
		_, err := echo.Enqueue(ctx, &batch, textArgs{"x"}, nil)
		require.NoError(t, err)
	}
	require.NoError(t, b.client.EnqueueBatch(ctx, &batch))
	var ran atomic.Int64
	for ran.Load() < jobs {
		before := ran.Load()
		stop := b.work(smallage.WorkerConfig{Concurrency: 4}, echoTable(func(context.Context, string) ([]byte, error) {
			ran.Add(1)
			return nil, nil
		}))
		eventually(t, func() bool { return ran.Load() >= min(before+100, jobs) }, "it works")
		stop()
		pending, err := b.rdb.XPendingExt(ctx, &redis.XPendingExtArgs{Stream: b.key("echo", "stream"), Group: "workers", Start: "-", End: "+", Count: 100}).Result()
		require.NoError(t, err)
		for _, p := range pending {
			require.Equal(t, "released", p.Consumer)
			require.EqualValues(t, 1, p.RetryCount, "a shutdown costs no delivery")
		}
	}
	require.EqualValues(t, jobs, ran.Load(), "each ran once")
}
