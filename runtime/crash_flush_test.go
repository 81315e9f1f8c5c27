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

// losses are what an operator, a failover without persistence or a restart may do to the keys of a queue.
var losses = map[string]func(ctx context.Context, b *bench) error{
	"FLUSHALL":     func(ctx context.Context, b *bench) error { return b.rdb.FlushAll(ctx).Err() },
	"SCRIPT FLUSH": func(ctx context.Context, b *bench) error { return b.rdb.ScriptFlush(ctx).Err() },
	"DEL stream":   func(ctx context.Context, b *bench) error { return b.rdb.Del(ctx, b.key("echo", "stream")).Err() },
	"DESTROY group": func(ctx context.Context, b *bench) error {
		return b.rdb.XGroupDestroy(ctx, b.key("echo", "stream"), "workers").Err()
	},
	"DEL registry": func(ctx context.Context, b *bench) error {
		return b.rdb.Del(ctx, b.key("echo", "workers"), b.key("echo", "pass")).Err()
	},
}

func TestAWorkerRecoversFromKeysThatVanishAtAnyMoment(t *testing.T) {
	t.Parallel()
	for name, lose := range losses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBenchOn(t, redistest.Start(t).Client())
			ctx := context.Background()
			hurt := func() { // also from handlers, which must not end the test
				if err := lose(ctx, b); err != nil {
					t.Error(err)
				}
			}
			var inHandler, failFirst atomic.Bool
			var afterClaim atomic.Bool
			fail := smallage.Task[textArgs]{Name: "test.FailOnce", Queue: "echo", Backoff: 20 * time.Millisecond}
			b.work(smallage.WorkerConfig{Middleware: []func(smallage.Handler) smallage.Handler{func(next smallage.Handler) smallage.Handler {
				return func(ctx context.Context, info smallage.JobInfo) ([]byte, error) {
					if afterClaim.CompareAndSwap(true, false) {
						hurt()
					}
					return next(ctx, info)
				}
			}}}, smallage.NewTable(
				smallage.HandleValue(&echo, func(_ context.Context, a textArgs) ([]byte, error) {
					if inHandler.CompareAndSwap(true, false) {
						hurt()
					}
					return []byte(a.Text), nil
				}),
				smallage.Handle(&fail, func(context.Context, textArgs) error {
					if failFirst.CompareAndSwap(true, false) {
						hurt()
						return errors.New("first run fails")
					}
					return nil
				}),
			))
			// A job that comes after the loss must run: the stream is read anew from its beginning.
			works := func(when string) {
				t.Helper()
				for i, opts := range [][]smallage.Option[textArgs]{
					{}, {echoWith.Dedup("key " + when)}, {echoWith.Delay(30 * time.Millisecond)}, {echoWith.ExpiresIn(time.Minute)},
				} {
					text := fmt.Sprint(when, i)
					id, err := echo.Enqueue(ctx, b.client, textArgs{text}, append(opts, echoWith.ResultTTL(time.Minute)))
					require.NoError(t, err)
					value, err := echo.Wait(ctx, b.client, id, 15*time.Second)
					require.NoError(t, err, "%s, job %d", when, i)
					require.Equal(t, text, string(value))
				}
			}
			works("before")
			hurt()
			works("while idle")
			for range 3 {
				hurt()
				time.Sleep(100 * time.Millisecond) // in the middle of whatever the worker does to recover
			}
			works("several times in a row")
			inHandler.Store(true)
			_, err := echo.Enqueue(ctx, b.client, textArgs{"x"}, []smallage.Option[textArgs]{echoWith.ResultTTL(time.Minute), echoWith.Dedup("in handler")})
			require.NoError(t, err)
			eventually(t, func() bool { return !inHandler.Load() }, "the handler is called")
			works("in the handler")
			afterClaim.Store(true)
			_, err = echo.Enqueue(ctx, b.client, textArgs{"x"}, []smallage.Option[textArgs]{echoWith.ResultTTL(time.Minute), echoWith.Dedup("after claim")})
			require.NoError(t, err)
			eventually(t, func() bool { return !afterClaim.Load() }, "the handler is about to be called")
			works("after the claim")
			failFirst.Store(true)
			_, err = fail.Enqueue(ctx, b.client, textArgs{"x"}, []smallage.Option[textArgs]{echoWith.Dedup("failing")})
			require.NoError(t, err)
			eventually(t, func() bool { return !failFirst.Load() }, "the failing handler is called")
			works("before a retry is written")
			eventually(t, func() bool { return b.rdb.XLen(ctx, b.key("echo", "stream")).Val() == 0 }, "the stream is empty")
			require.Less(t, strings.Count(b.log.String(), "\n"), 40, "the log stays short:\n%s", b.log)
			require.NotContains(t, b.log.String(), "NOSCRIPT")
		})
	}
}

func TestScriptsThatVanishAllTheTimeCostNoJob(t *testing.T) {
	t.Parallel()
	b := newBenchOn(t, redistest.Start(t).Client())
	ctx := context.Background()
	stop := make(chan struct{})
	flushed := make(chan int, 1)
	go func() {
		n := 0
		for {
			select {
			case <-stop:
				flushed <- n
				return
			default:
				if b.rdb.ScriptFlush(ctx).Err() == nil {
					n++
				}
				time.Sleep(time.Millisecond)
			}
		}
	}()
	var runs atomic.Int64
	b.work(smallage.WorkerConfig{Concurrency: 20}, echoTable(func(ctx context.Context, text string) ([]byte, error) {
		runs.Add(1)
		if info, _ := smallage.InfoFromContext(ctx); info.Attempt == 1 && strings.HasPrefix(text, "fail") {
			return nil, smallage.RetryAfter(0, errors.New("first run fails"))
		}
		return []byte(text), nil
	}))
	const jobs = 300
	var ids []smallage.JobID
	for i := range jobs {
		kind := []string{"fail", "ok"}[i%2]
		opts := []smallage.Option[textArgs]{echoWith.ResultTTL(time.Minute)}
		if i%3 == 0 {
			opts = append(opts, echoWith.Dedup(fmt.Sprint("key", i)))
		}
		if i%5 == 0 {
			opts = append(opts, echoWith.Delay(10*time.Millisecond))
		}
		id, err := echo.Enqueue(ctx, b.client, textArgs{fmt.Sprint(kind, i)}, opts)
		require.NoError(t, err)
		ids = append(ids, id)
	}
	for _, id := range ids {
		res, err := b.client.Wait(ctx, id, 20*time.Second)
		require.NoError(t, err)
		require.True(t, res.OK(), res)
	}
	close(stop)
	require.Greater(t, <-flushed, 20, "the scripts vanished too seldom to prove anything")
	require.EqualValues(t, jobs+jobs/2, runs.Load())
	eventually(t, func() bool { return b.rdb.XLen(ctx, b.key("echo", "stream")).Val() == 0 }, "the stream is empty")
}

func TestEntriesDeletedWhileTheyAreHeldAreClearedAndTheRestRuns(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(ctx context.Context, b *bench, ids []string) error{
		"XDEL": func(ctx context.Context, b *bench, ids []string) error {
			return b.rdb.XDel(ctx, b.key("echo", "stream"), ids[:10]...).Err()
		},
		"XTRIM": func(ctx context.Context, b *bench, ids []string) error {
			return b.rdb.XTrimMinID(ctx, b.key("echo", "stream"), ids[10]).Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			ctx := context.Background()
			for i := range 20 {
				_, err := echo.Enqueue(ctx, b.client, textArgs{fmt.Sprint(i)}, nil)
				require.NoError(t, err)
			}
			entries, err := b.rdb.XRange(ctx, b.key("echo", "stream"), "-", "+").Result()
			require.NoError(t, err)
			var ids []string
			for _, e := range entries {
				ids = append(ids, e.ID)
			}
			b.loseWithWorkers("echo", 1)
			require.NoError(t, remove(ctx, b, ids))
			var ran atomic.Int64
			b.work(smallage.WorkerConfig{}, echoTable(func(context.Context, string) ([]byte, error) { ran.Add(1); return nil, nil }))
			eventually(t, func() bool {
				pending, err := b.rdb.XPending(ctx, b.key("echo", "stream"), "workers").Result()
				return err == nil && pending.Count == 0 && b.rdb.XLen(ctx, b.key("echo", "stream")).Val() == 0
			}, "nothing is pending")
			require.EqualValues(t, 10, ran.Load())
			require.EqualValues(t, 0, b.rdb.Exists(ctx, b.key("echo", "dead"), b.key("echo", "verdict")).Val())
		})
	}
}

func TestAnEntryDeletedUnderARunningHandlerDoesNotHarmItsWorker(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	causes, began := make(chan error, 3), make(chan struct{}, 3)
	b.work(smallage.WorkerConfig{Lease: 400 * time.Millisecond, Concurrency: 3}, echoTable(func(ctx context.Context, text string) ([]byte, error) {
		if text == "next" {
			return []byte(text), nil
		}
		began <- struct{}{}
		<-ctx.Done()
		causes <- context.Cause(ctx)
		if text == "ok" {
			return nil, nil
		}
		return nil, errors.New("fails")
	}))
	for _, text := range []string{"ok", "fail", "fail"} {
		_, err := echo.Enqueue(ctx, b.client, textArgs{text}, nil)
		require.NoError(t, err)
	}
	for range 3 {
		<-began
	}
	entries, err := b.rdb.XRange(ctx, b.key("echo", "stream"), "-", "+").Result()
	require.NoError(t, err)
	for _, e := range entries {
		require.NoError(t, b.rdb.XDel(ctx, b.key("echo", "stream"), e.ID).Err())
	}
	for range 3 {
		require.ErrorIs(t, <-causes, smallage.ErrLeaseLost)
	}
	id, err := echo.Enqueue(ctx, b.client, textArgs{"next"}, []smallage.Option[textArgs]{echoWith.ResultTTL(time.Minute)})
	require.NoError(t, err)
	_, err = echo.Wait(ctx, b.client, id, 10*time.Second)
	require.NoError(t, err)
	eventually(t, func() bool { return b.rdb.XPending(ctx, b.key("echo", "stream"), "workers").Val().Count == 0 }, "nothing is pending")
	require.EqualValues(t, 0, b.rdb.Exists(ctx, b.key("echo", "dead"), b.key("echo", "delayed"), b.key("echo", "verdict")).Val())
}
