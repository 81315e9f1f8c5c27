package smallage_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	smallage "github.com/smallage/smallage/runtime"
)

type textArgs struct {
	Text string `json:"text"`
}

var echo = smallage.Task[textArgs]{Name: "test.Echo", Queue: "echo"}

var echoWith smallage.With[textArgs]

func echoTable(handler func(ctx context.Context, text string) ([]byte, error)) smallage.Table {
	return smallage.NewTable(smallage.HandleValue(&echo, func(ctx context.Context, a textArgs) ([]byte, error) {
		return handler(ctx, a.Text)
	}))
}

func TestAJobRunsAndItsValueReachesTheWaiter(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.work(smallage.WorkerConfig{}, echoTable(func(_ context.Context, text string) ([]byte, error) {
		return []byte("<" + text + ">"), nil
	}))
	ctx := context.Background()
	for i := range 20 {
		id, err := echo.Enqueue(ctx, b.client, textArgs{fmt.Sprint(i)}, []smallage.Option[textArgs]{echoWith.ResultTTL(time.Minute)})
		require.NoError(t, err)
		value, err := echo.Wait(ctx, b.client, id, 10*time.Second)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("<%d>", i), string(value))
	}
}

func TestManyJobsAllRunOnceAndLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var ran atomic.Int64
	b.work(smallage.WorkerConfig{Concurrency: 50}, echoTable(func(context.Context, string) ([]byte, error) {
		ran.Add(1)
		return nil, nil
	}))
	ctx := context.Background()
	for i := range 2000 {
		_, err := echo.Enqueue(ctx, b.client, textArgs{fmt.Sprint(i)}, nil)
		require.NoError(t, err)
	}
	eventually(t, func() bool { return b.rdb.XLen(ctx, b.key("echo", "stream")).Val() == 0 }, "the stream is empty")
	require.EqualValues(t, 2000, ran.Load())
	require.EqualValues(t, 0, b.rdb.XPending(ctx, b.key("echo", "stream"), "workers").Val().Count)
}

func TestAFailingJobIsRetriedAndThenDeadWithItsFailureRecorded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	task := smallage.Task[textArgs]{Name: "test.Fail", Attempts: 3, Backoff: 10 * time.Millisecond}
	var runs atomic.Int64
	b.work(smallage.WorkerConfig{}, smallage.NewTable(smallage.Handle(&task, func(context.Context, textArgs) error {
		return fmt.Errorf("no luck in run %d", runs.Add(1))
	})))
	ctx := context.Background()
	id, err := task.Enqueue(ctx, b.client, textArgs{"x"}, []smallage.Option[textArgs]{echoWith.ResultTTL(time.Minute)})
	require.NoError(t, err)
	res, err := b.client.Wait(ctx, id, 10*time.Second)
	require.NoError(t, err)
	require.Equal(t, smallage.StatusFailed, res.Status)
	require.Equal(t, smallage.ReasonAttempts, res.Reason)
	require.Equal(t, 3, res.Attempts)
	require.Contains(t, res.Error, "no luck in run 3")
	var failed *smallage.JobError
	require.ErrorAs(t, res.Err(), &failed)
	eventually(t, func() bool { return b.rdb.ZCard(ctx, b.key("default", "dead")).Val() == 1 }, "the job is in the dead letter queue")
	require.EqualValues(t, 3, runs.Load())
	require.EqualValues(t, 0, b.rdb.Exists(ctx, b.key("default", "verdict"), b.key("default", "delayed")).Val())
}

func TestASecondJobOfADedupKeyIsSkippedAndItsWaiterIsTold(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var runs atomic.Int64
	b.work(smallage.WorkerConfig{}, echoTable(func(context.Context, string) ([]byte, error) {
		runs.Add(1)
		return nil, nil
	}))
	ctx := context.Background()
	opts := []smallage.Option[textArgs]{echoWith.ResultTTL(time.Minute), echoWith.Dedup("echo:{1} 2")}
	first, err := echo.Enqueue(ctx, b.client, textArgs{"a"}, opts)
	require.NoError(t, err)
	res, err := b.client.Wait(ctx, first, 10*time.Second)
	require.NoError(t, err)
	require.True(t, res.OK(), res)
	second, err := echo.Enqueue(ctx, b.client, textArgs{"b"}, opts)
	require.NoError(t, err)
	res, err = b.client.Wait(ctx, second, 10*time.Second)
	require.NoError(t, err)
	require.Equal(t, smallage.StatusDuplicate, res.Status)
	require.Equal(t, first, res.Owner)
	require.EqualValues(t, 1, runs.Load())
	eventually(t, func() bool { return len(b.events.of(smallage.EventSkipped, second)) == 1 }, "the observer is told once")
}

func TestARetryPassesTheClaimOfItsOwnJob(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	task := smallage.Task[textArgs]{Name: "test.Once", Backoff: 10 * time.Millisecond}
	var runs atomic.Int64
	b.work(smallage.WorkerConfig{}, smallage.NewTable(smallage.Handle(&task, func(context.Context, textArgs) error {
		if runs.Add(1) == 1 {
			return errors.New("first run fails")
		}
		return nil
	})))
	ctx := context.Background()
	id, err := task.Enqueue(ctx, b.client, textArgs{"x"}, []smallage.Option[textArgs]{echoWith.ResultTTL(time.Minute), echoWith.Dedup("once")})
	require.NoError(t, err)
	res, err := b.client.Wait(ctx, id, 10*time.Second)
	require.NoError(t, err)
	require.True(t, res.OK(), res)
	require.Equal(t, 2, res.Attempts)
	require.EqualValues(t, 2, runs.Load())
}

func TestADelayedJobRunsWhenItIsDue(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ran := make(chan time.Time, 1)
	b.work(smallage.WorkerConfig{}, echoTable(func(context.Context, string) ([]byte, error) {
		ran <- time.Now()
		return nil, nil
	}))
	ctx := context.Background()
	begin := time.Now()
	_, err := echo.Enqueue(ctx, b.client, textArgs{"later"}, []smallage.Option[textArgs]{echoWith.Delay(300 * time.Millisecond)})
	require.NoError(t, err)
	at := <-ran
	require.GreaterOrEqual(t, at.Sub(begin), 299*time.Millisecond)
	t.Logf("due after 300ms, ran after %v", at.Sub(begin))
}
