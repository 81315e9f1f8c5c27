package smallage_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/smallage/smallage/internal/redistest"
	smallage "github.com/smallage/smallage/runtime"
)

// gated enqueues a job of the echo task with a dedup key and asks for its outcome.
func (b *bench) gated(key, text string, opts ...smallage.Option[textArgs]) smallage.JobID {
	b.t.Helper()
	opts = append([]smallage.Option[textArgs]{echoWith.Dedup(key), echoWith.ResultTTL(time.Minute)}, opts...)
	id, err := echo.Enqueue(context.Background(), b.client, textArgs{text}, opts)
	require.NoError(b.t, err)
	return id
}

// outcome awaits how a job ended.
func (b *bench) outcome(id smallage.JobID) smallage.Result {
	b.t.Helper()
	res, err := b.client.Wait(context.Background(), id, 20*time.Second)
	require.NoError(b.t, err)
	return res
}

// requireDuplicate awaits that a job was skipped for its owner, without a death, and that the observer was told once.
func (b *bench) requireDuplicate(id, owner smallage.JobID, key string) {
	b.t.Helper()
	res := b.outcome(id)
	require.Equal(b.t, smallage.StatusDuplicate, res.Status, res)
	require.Equal(b.t, owner, res.Owner)
	var failure *smallage.JobError
	require.ErrorAs(b.t, res.Err(), &failure)
	require.Equal(b.t, owner, failure.Owner)
	eventually(b.t, func() bool { return len(b.events.of(smallage.EventSkipped, id)) > 0 }, "the observer is told of the duplicate")
	skipped := b.events.of(smallage.EventSkipped, id)
	require.Len(b.t, skipped, 1)
	require.Equal(b.t, key, skipped[0].Key)
	require.Equal(b.t, owner, skipped[0].Owner)
	require.Empty(b.t, b.events.of(smallage.EventDead, id))
	require.Empty(b.t, b.events.of(smallage.EventStarted, id))
}

func TestAWindowCountsFromDoneAndResultTTLPlaysNoPart(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var runs atomic.Int64
	b.work(smallage.WorkerConfig{DedupTTL: 1500 * time.Millisecond}, echoTable(func(context.Context, string) ([]byte, error) {
		runs.Add(1)
		return nil, nil
	}))
	ctx := context.Background()
	first := b.gated("window", "a", echoWith.ResultTTL(time.Hour))
	require.True(t, b.outcome(first).OK())
	info, err := b.client.Dedup(ctx, "window")
	require.NoError(t, err)
	require.Equal(t, smallage.DedupDone, info.State)
	require.Equal(t, first, info.Owner)
	require.LessOrEqual(t, info.Remaining, 1500*time.Millisecond)

	b.requireDuplicate(b.gated("window", "b"), first, "window")
	eventually(t, func() bool {
		info, err := b.client.Dedup(ctx, "window")
		return err == nil && info == smallage.DedupInfo{}
	}, "the window ends")
	third := b.gated("window", "c")
	require.True(t, b.outcome(third).OK())
	require.EqualValues(t, 2, runs.Load())
	res, err := b.client.Result(ctx, first)
	require.NoError(t, err, "the outcome outlives the window")
	require.True(t, res.OK())
}

func TestATasksOwnWindowReplacesTheWorkers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	task := smallage.Task[textArgs]{Name: "test.Hourly", DedupTTL: time.Hour}
	b.work(smallage.WorkerConfig{DedupTTL: time.Minute}, smallage.NewTable(
		smallage.Handle(&task, func(context.Context, textArgs) error { return nil })))
	ctx := context.Background()
	_, err := task.Enqueue(ctx, b.client, textArgs{}, []smallage.Option[textArgs]{echoWith.Dedup("hourly")})
	require.NoError(t, err)
	eventually(t, func() bool {
		info, err := b.client.Dedup(ctx, "hourly")
		return err == nil && info.State == smallage.DedupDone && info.Remaining > 59*time.Minute
	}, "the key is done for an hour")
}

// An ending other than ok frees the key, so that the next job of it runs.
func TestAJobThatDidNotSucceedFreesItsKey(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(ctx context.Context, b *bench, id smallage.JobID) error{
		"attempts spent": func(context.Context, *bench, smallage.JobID) error { return errors.New("no luck") },
		"buried":         func(context.Context, *bench, smallage.JobID) error { return smallage.Bury(errors.New("hopeless")) },
		"panicked":       func(context.Context, *bench, smallage.JobID) error { panic("oh") },
		"cancelled": func(ctx context.Context, b *bench, id smallage.JobID) error {
			if err := b.client.Cancel(context.Background(), id); err != nil {
				return err
			}
			<-ctx.Done()
			return ctx.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			task := smallage.Task[textArgs]{Name: "test.Ends", Attempts: 2, Backoff: 10 * time.Millisecond}
			b.work(smallage.WorkerConfig{}, smallage.NewTable(smallage.Handle(&task, func(ctx context.Context, a textArgs) error {
				job, _ := smallage.InfoFromContext(ctx)
				if a.Text == "good" {
					return nil
				}
				return fail(ctx, b, job.ID)
			})))
			ctx := context.Background()
			opts := []smallage.Option[textArgs]{echoWith.Dedup("ends"), echoWith.ResultTTL(time.Minute)}
			first, err := task.Enqueue(ctx, b.client, textArgs{"bad"}, opts)
			require.NoError(t, err)
			require.False(t, b.outcome(first).OK())
			eventually(t, func() bool {
				info, err := b.client.Dedup(ctx, "ends")
				return err == nil && info.State == smallage.DedupFree
			}, "the key is free")
			second, err := task.Enqueue(ctx, b.client, textArgs{"good"}, opts)
			require.NoError(t, err)
			require.True(t, b.outcome(second).OK())
			require.False(t, b.outcome(first).OK(), "its outcome stays")
		})
	}
}

func TestAReplayIsADuplicateWhereARivalIsDoneMeanwhile(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.work(smallage.WorkerConfig{}, echoTable(func(_ context.Context, text string) ([]byte, error) {
		if text == "bad" {
			return nil, smallage.Bury(errors.New("hopeless"))
		}
		return nil, nil
	}))
	ctx := context.Background()
	dead := b.gated("rivals", "bad")
	require.Equal(t, smallage.StatusFailed, b.outcome(dead).Status)
	eventually(t, func() bool { _, err := b.client.Dead().Get(ctx, dead); return err == nil }, "it is buried")
	rival := b.gated("rivals", "good")
	require.True(t, b.outcome(rival).OK())
	require.NoError(t, b.client.Dead().Replay(ctx, dead))
	res := b.outcome(dead)
	require.Equal(t, smallage.StatusDuplicate, res.Status)
	require.Equal(t, rival, res.Owner)
}

// A worker that is stopped in the middle of a handler hands its job back. It runs again elsewhere, and the key stays its
// own meanwhile.
func TestAJobHandedBackAtShutdownKeepsItsKey(t *testing.T) {
	t.Parallel()
	for name, heeds := range map[string]bool{"the handler heeds its context": true, "the handler ignores its context": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			running, release := make(chan struct{}), make(chan struct{})
			stop := b.work(smallage.WorkerConfig{DrainTimeout: 10 * time.Millisecond}, echoTable(func(ctx context.Context, _ string) ([]byte, error) {
				close(running)
				if heeds {
					<-ctx.Done()
				} else {
					<-release
				}
				return nil, context.Cause(ctx)
			}))
			t.Cleanup(func() { close(release) })
			first := b.gated("handed back", "a")
			<-running
			second := b.gated("handed back", "b")
			b.requireDuplicate(second, first, "handed back")
			stop()
			info, err := b.client.Dedup(context.Background(), "handed back")
			require.NoError(t, err)
			require.Equal(t, smallage.DedupClaimed, info.State)
			require.Equal(t, first, info.Owner)

			third := b.gated("handed back", "c")
			b.work(smallage.WorkerConfig{}, echoTable(func(_ context.Context, text string) ([]byte, error) { return []byte(text), nil }))
			res := b.outcome(first)
			require.True(t, res.OK(), res)
			require.Equal(t, "a", string(res.Value))
			require.Equal(t, 1, res.Attempts, "a shutdown costs no attempt")
			b.requireDuplicate(third, first, "handed back")
		})
	}
}

// What a job is that has succeeded before, whatever brings it to a worker again.
func TestACopyOfADoneJobIsNeverRunNorEndedInAnotherWay(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(t *testing.T, b *bench, id smallage.JobID, fields map[string]any){
		"redelivered": func(*testing.T, *bench, smallage.JobID, map[string]any) {},
		"cancelled since": func(t *testing.T, b *bench, id smallage.JobID, _ map[string]any) {
			require.NoError(t, b.rdb.SAdd(context.Background(), b.ns+":{queues}", "echo").Err())
			require.NoError(t, b.client.Cancel(context.Background(), id))
		},
		"its arguments fit no more": func(_ *testing.T, _ *bench, _ smallage.JobID, fields map[string]any) { fields["args"] = `{"text":7}` },
		"its task is unknown":       func(_ *testing.T, _ *bench, _ smallage.JobID, fields map[string]any) { fields["task"] = "test.Unknown" },
		"its entry is malformed":    func(_ *testing.T, _ *bench, _ smallage.JobID, fields map[string]any) { fields["attempt"] = "many" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			ctx := context.Background()
			id, err := smallage.NewJobID()
			require.NoError(t, err)
			fields := map[string]any{
				"v": 1, "id": id.String(), "task": "test.Echo", "args": `{"text":"a"}`, "enqueued_at": 1, "attempt": 1,
				"dedup": "done before", "result_ttl_ms": 60000,
			}
			prepare(t, b, id, fields)
			// As a worker leaves it that dies right after it marked the key.
			require.NoError(t, b.rdb.Set(ctx, b.ns+":{d:done%20before}", "done:"+id.String(), time.Hour).Err())
			addEntry(t, b, "echo", fields)
			var runs atomic.Int64
			b.work(smallage.WorkerConfig{}, echoTable(func(context.Context, string) ([]byte, error) {
				runs.Add(1)
				return nil, nil
			}))
			res := b.outcome(id)
			require.True(t, res.OK(), res)
			eventually(t, func() bool { return b.rdb.XLen(ctx, b.key("echo", "stream")).Val() == 0 }, "it is acknowledged")
			require.Zero(t, runs.Load())
			require.Empty(t, b.events.of(smallage.EventDead, id))
			skipped := b.events.of(smallage.EventSkipped, id)
			require.Len(t, skipped, 1)
			require.Equal(t, id, skipped[0].Owner)
			if fields["task"] == "test.Echo" {
				_, err = echo.Lookup(ctx, b.client, id)
				require.ErrorIs(t, err, smallage.ErrValueLost)
			}
		})
	}
}

func TestACopyOfADoneJobLeavesItsOutcomeAsItIs(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{"a value": "small", "a value too large to keep": strings.Repeat("x", 100)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			ctx := context.Background()
			b.work(smallage.WorkerConfig{MaxValueBytes: 50}, echoTable(func(context.Context, string) ([]byte, error) { return []byte(value), nil }))
			id := b.gated("left", "a")
			before := b.outcome(id)
			addEntry(t, b, "echo", map[string]any{
				"v": 1, "id": id.String(), "task": "test.Echo", "args": `{"text":"a"}`, "enqueued_at": 1, "attempt": 1, "dedup": "left", "result_ttl_ms": 60000,
			})
			eventually(t, func() bool { return len(b.events.of(smallage.EventSkipped, id)) == 1 }, "the copy is skipped")
			eventually(t, func() bool { return b.rdb.XLen(ctx, b.key("echo", "stream")).Val() == 0 }, "it is acknowledged")
			after, err := b.client.Result(ctx, id)
			require.NoError(t, err)
			require.Equal(t, before, after)
		})
	}
}

func TestDedupAndReleaseDedupTellWhatTheKeyHolds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	running, release := make(chan struct{}), make(chan struct{})
	b.work(smallage.WorkerConfig{}, echoTable(func(_ context.Context, text string) ([]byte, error) {
		if text == "slow" {
			close(running)
			<-release
		}
		return nil, nil
	}))
	for _, look := range []func(context.Context, string) (smallage.DedupInfo, error){b.client.Dedup, b.client.ReleaseDedup} {
		info, err := look(ctx, "operated")
		require.NoError(t, err)
		require.Equal(t, smallage.DedupInfo{}, info)
		_, err = look(ctx, "")
		require.ErrorIs(t, err, smallage.ErrInvalid)
		_, err = look(ctx, strings.Repeat("k", smallage.MaxDedupKeyBytes+1))
		require.ErrorIs(t, err, smallage.ErrInvalid)
		gone, cancel := context.WithCancel(ctx)
		cancel()
		_, err = look(gone, "operated")
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, `"operated"`)
	}
	slow := b.gated("operated", "slow")
	<-running
	for _, look := range []func(context.Context, string) (smallage.DedupInfo, error){b.client.Dedup, b.client.ReleaseDedup} {
		info, err := look(ctx, "operated")
		require.NoError(t, err)
		require.Equal(t, smallage.DedupClaimed, info.State)
		require.Equal(t, slow, info.Owner)
		require.InDelta(t, 24*time.Hour, info.Remaining, float64(time.Minute))
	}
	second := b.gated("operated", "fast")
	require.True(t, b.outcome(second).OK(), "the key was freed")
	close(release)
	require.True(t, b.outcome(slow).OK(), "the job that had held it runs on")
	info, err := b.client.ReleaseDedup(ctx, "operated")
	require.NoError(t, err)
	require.Equal(t, smallage.DedupDone, info.State)
	require.Equal(t, second, info.Owner, "what another job holds is not overwritten")
	third := b.gated("operated", "fast")
	require.True(t, b.outcome(third).OK())
}

func TestOnAClusterEachKeyRunsOnce(t *testing.T) {
	t.Parallel()
	b := newBenchOn(t, redistest.StartCluster(t).Client())
	var runs atomic.Int64
	b.work(smallage.WorkerConfig{}, echoTable(func(_ context.Context, text string) ([]byte, error) {
		runs.Add(1)
		return []byte(text), nil
	}))
	const keys = 20
	for copies := range 3 {
		for k := range keys {
			id := b.gated(fmt.Sprintf("cluster {%d}", k), "x")
			if res := b.outcome(id); copies == 0 {
				require.True(t, res.OK(), res)
				require.Equal(t, "x", string(res.Value))
			} else {
				require.Equal(t, smallage.StatusDuplicate, res.Status)
			}
		}
	}
	require.EqualValues(t, keys, runs.Load())
	redistest.RequireAllKeysHaveTTL(t, b.rdb, b.ns+":{d:*")
}
