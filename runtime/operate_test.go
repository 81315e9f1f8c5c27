package smallage_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	smallage "github.com/smallage/smallage/runtime"
)

func TestAPausedQueueStartsNothingUntilItIsResumed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	var ran atomic.Int64
	require.NoError(t, b.client.Pause(ctx, "echo"))
	b.work(smallage.WorkerConfig{}, echoTable(func(context.Context, string) ([]byte, error) {
		ran.Add(1)
		return nil, nil
	}))
	_, err := echo.Enqueue(ctx, b.client, textArgs{"x"}, nil)
	require.NoError(t, err)
	eventually(t, func() bool { return b.rdb.HLen(ctx, b.key("echo", "workers")).Val() == 1 }, "the worker has looked at the queue")
	paused, err := b.client.Paused(ctx, "echo")
	require.NoError(t, err)
	require.True(t, paused)
	require.Never(t, func() bool { return ran.Load() > 0 }, 1500*time.Millisecond, 50*time.Millisecond)
	require.NoError(t, b.client.Resume(ctx, "echo"))
	eventually(t, func() bool { return ran.Load() == 1 }, "the job runs")
}

func TestACancelledJobThatHasNotStartedNeverRuns(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	var ran atomic.Int64
	opts := []smallage.Option[textArgs]{echoWith.ResultTTL(time.Minute), echoWith.Dedup("cancelled")}
	id, err := echo.Enqueue(ctx, b.client, textArgs{"x"}, opts)
	require.NoError(t, err)
	delayed, err := echo.Enqueue(ctx, b.client, textArgs{"y"}, append(opts, echoWith.Delay(time.Hour)))
	require.NoError(t, err)
	require.NoError(t, b.client.Cancel(ctx, id))
	require.NoError(t, b.client.Cancel(ctx, delayed))
	b.work(smallage.WorkerConfig{}, echoTable(func(context.Context, string) ([]byte, error) {
		ran.Add(1)
		return nil, nil
	}))
	for _, id := range []smallage.JobID{id, delayed} {
		res, err := b.client.Wait(ctx, id, 10*time.Second)
		require.NoError(t, err)
		require.Equal(t, smallage.StatusCancelled, res.Status)
		eventually(t, func() bool { return len(b.events.of(smallage.EventCancelled, id)) == 1 }, "the observer is told once")
	}
	require.Zero(t, ran.Load())
	require.EqualValues(t, 0, b.rdb.ZCard(ctx, b.key("echo", "dead")).Val())
	require.EqualValues(t, 0, b.rdb.Exists(ctx, b.ns+":{d:cancelled}").Val())
}

func TestCancelEndsTheContextOfARunningJobAndNilIsStillSuccess(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		err    bool
		status smallage.Status
	}{
		"error": {true, smallage.StatusCancelled},
		"nil":   {false, smallage.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			ctx := context.Background()
			started := make(chan struct{})
			b.work(smallage.WorkerConfig{}, echoTable(func(ctx context.Context, _ string) ([]byte, error) {
				close(started)
				<-ctx.Done()
				if want.err {
					return nil, context.Cause(ctx)
				}
				return nil, nil
			}))
			id, err := echo.Enqueue(ctx, b.client, textArgs{"x"}, []smallage.Option[textArgs]{echoWith.ResultTTL(time.Minute)})
			require.NoError(t, err)
			<-started
			require.NoError(t, b.client.Cancel(ctx, id))
			res, err := b.client.Wait(ctx, id, 10*time.Second)
			require.NoError(t, err)
			require.Equal(t, want.status, res.Status)
		})
	}
}

func TestAJobThatExpiredBeforeItStartedIsDroppedWithItsOutcome(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	id, err := echo.Enqueue(ctx, b.client, textArgs{"x"}, []smallage.Option[textArgs]{echoWith.ResultTTL(time.Minute), echoWith.ExpiresIn(20 * time.Millisecond)})
	require.NoError(t, err)
	fresh, err := echo.Enqueue(ctx, b.client, textArgs{"y"}, []smallage.Option[textArgs]{echoWith.ResultTTL(time.Minute), echoWith.ExpiresIn(time.Hour)})
	require.NoError(t, err)
	time.Sleep(50 * time.Millisecond) // the time that makes it expire
	b.work(smallage.WorkerConfig{}, echoTable(func(_ context.Context, text string) ([]byte, error) { return []byte(text), nil }))
	res, err := b.client.Wait(ctx, id, 10*time.Second)
	require.NoError(t, err)
	require.Equal(t, smallage.StatusExpired, res.Status)
	res, err = b.client.Wait(ctx, fresh, 10*time.Second)
	require.NoError(t, err)
	require.True(t, res.OK(), res)
	eventually(t, func() bool { return len(b.events.of(smallage.EventExpired, id)) == 1 }, "the observer is told once")
}

func TestAFullLowQueueDoesNotStarveAHighOneNorTheOtherWayRound(t *testing.T) {
	t.Parallel()
	for name, strict := range map[string]bool{"weights": false, "strict": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			ctx := context.Background()
			high := smallage.Task[textArgs]{Name: "high", Queue: "high"}
			low := smallage.Task[textArgs]{Name: "low", Queue: "low"}
			const n = 80
			for i := range n {
				_, err := low.Enqueue(ctx, b.client, textArgs{fmt.Sprint(i)}, nil)
				require.NoError(t, err)
				_, err = high.Enqueue(ctx, b.client, textArgs{fmt.Sprint(i)}, nil)
				require.NoError(t, err)
			}
			order := make(chan string, 2*n)
			handle := func(name string) func(context.Context, textArgs) error {
				return func(context.Context, textArgs) error {
					time.Sleep(20 * time.Millisecond) // longer than a read, as real work is
					order <- name
					return nil
				}
			}
			b.work(smallage.WorkerConfig{Concurrency: 4, Queues: map[string]int{"high": 3, "low": 1}, StrictPriority: strict},
				smallage.NewTable(smallage.Handle(&high, handle("high")), smallage.Handle(&low, handle("low"))))
			highs, lows := 0, 0
			for highs < n/2 {
				if <-order == "high" {
					highs++
				} else if highs >= 10 { // both queues are being read by now
					lows++
				}
			}
			if strict {
				require.LessOrEqual(t, lows, n/10, "low jobs ran while high ones waited")
			} else {
				require.InDelta(t, (n/2-10)/3, lows, n/10, "three to one")
			}
		})
	}
}
