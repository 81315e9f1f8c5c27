package smallage_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	smallage "github.com/smallage/smallage/runtime"
)

func TestTenThousandDeadJobsAreAllReachableAndAllReplayed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	const jobs = 10_050
	var mended atomic.Bool
	var attempts, runs atomic.Int64
	task := smallage.Task[textArgs]{Name: "test.Mass", Queue: "mass", Attempts: 1}
	b.work(smallage.WorkerConfig{Concurrency: 50, Logger: slog.New(slog.DiscardHandler)}, smallage.NewTable(smallage.Handle(&task, func(ctx context.Context, _ textArgs) error {
		if !mended.Load() {
			return errNoLuck
		}
		info, _ := smallage.InfoFromContext(ctx)
		attempts.Add(int64(info.Attempt))
		runs.Add(1)
		return nil
	})))
	known := make(map[smallage.JobID]bool, jobs)
	for i := range jobs {
		id, err := task.Enqueue(ctx, b.client, textArgs{fmt.Sprint(i)}, nil)
		require.NoError(t, err)
		known[id] = true
	}
	require.Eventually(t, func() bool { return b.rdb.ZCard(ctx, b.key("mass", "dead")).Val() == jobs }, time.Minute, 20*time.Millisecond)

	seen := make(map[smallage.JobID]bool, jobs)
	var last time.Time
	pages := 0
	for after := ""; ; pages++ {
		page, next, err := b.client.Dead().List(ctx, smallage.DeadFilter{}, after, 500)
		require.NoError(t, err)
		for _, job := range page {
			require.False(t, seen[job.ID], "job %s is on two pages", job.ID)
			require.True(t, known[job.ID])
			require.False(t, job.DiedAt.Before(last), "the oldest come first")
			seen[job.ID], last = true, job.DiedAt
		}
		if after = next; after == "" {
			break
		}
	}
	require.Len(t, seen, jobs)
	require.Equal(t, 20, pages)

	mended.Store(true)
	n, err := b.client.Dead().ReplayAll(ctx, smallage.DeadFilter{Task: "test.Mass"})
	require.NoError(t, err)
	require.Equal(t, jobs, n)
	require.Eventually(t, func() bool { return runs.Load() == jobs && b.rdb.XLen(ctx, b.key("mass", "stream")).Val() == 0 }, time.Minute, 20*time.Millisecond)
	require.EqualValues(t, jobs, attempts.Load(), "every replay began with its first attempt")
	require.EqualValues(t, 0, b.rdb.Exists(ctx, b.key("mass", "dead"), b.key("mass", "dead:jobs"), b.key("mass", "dead:ids"), b.key("mass", "verdict")).Val(),
		"nothing is left of them")
}
