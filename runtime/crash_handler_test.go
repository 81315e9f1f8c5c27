package smallage_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/smallage/smallage/internal/redistest"
	smallage "github.com/smallage/smallage/runtime"
)

// brittle is an error whose text cannot be had.
type brittle struct{ text *string }

func (b *brittle) Error() string { return *b.text }

func TestAHandlerThatLeavesByAnyOtherDoorHasFailedItsAttempt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		leave func()
		err   error
		text  string
		stack bool
	}{
		"panic with a text":          {leave: func() { panic("no way") }, text: "panic: no way", stack: true},
		"panic with an error":        {leave: func() { panic(errors.New("no way")) }, text: "panic: no way", stack: true},
		"panic with nil":             {leave: func() { panic(nil) }, text: "nil", stack: true}, //nolint:govet // what is tested
		"panic of a nil pointer":     {leave: func() { _ = *(*brittle)(nil) }, text: "nil pointer", stack: true},
		"panic whose text panics":    {leave: func() { panic(&brittle{}) }, text: "panic: ", stack: true},
		"Goexit":                     {leave: runtime.Goexit, text: "runtime.Goexit", stack: true},
		"FailNow":                    {leave: func() { new(testing.T).FailNow() }, text: "FailNow", stack: true},
		"an error whose text panics": {err: &brittle{}, text: "brittle"},
		"a nil pointer as an error":  {err: (*brittle)(nil), text: "brittle"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			task := smallage.Task[textArgs]{Name: "test.Leave", Queue: "leave", Attempts: 2, Backoff: time.Millisecond, BackoffMax: time.Millisecond}
			var runs atomic.Int64
			b.work(smallage.WorkerConfig{Concurrency: 1}, smallage.NewTable(smallage.Handle(&task, func(context.Context, textArgs) error {
				runs.Add(1)
				if c.leave != nil {
					c.leave()
				}
				return c.err
			})), echoTable(func(_ context.Context, text string) ([]byte, error) { return []byte(text), nil }))
			ctx := context.Background()
			id, err := task.Enqueue(ctx, b.client, textArgs{"x"}, []smallage.Option[textArgs]{echoWith.ResultTTL(time.Minute), echoWith.Dedup("leave")})
			require.NoError(t, err)
			res, err := b.client.Wait(ctx, id, 15*time.Second)
			require.NoError(t, err)
			require.Equal(t, smallage.StatusFailed, res.Status)
			require.Equal(t, smallage.ReasonAttempts, res.Reason)
			require.Contains(t, res.Error, c.text)
			require.EqualValues(t, 2, runs.Load())
			var dead smallage.DeadJob
			eventually(t, func() bool { dead, err = b.client.Dead().Get(ctx, id); return err == nil }, "it is in the dead letter queue")
			require.Len(t, dead.History, 2)
			for _, attempt := range dead.History {
				require.Contains(t, attempt.Error, c.text)
				if c.stack {
					require.Contains(t, attempt.Stack, "crash_handler_test.go", "the stack leads to the handler")
				}
			}
			// The only slot is free again.
			id, err = echo.Enqueue(ctx, b.client, textArgs{"next"}, []smallage.Option[textArgs]{echoWith.ResultTTL(time.Minute)})
			require.NoError(t, err)
			value, err := echo.Wait(ctx, b.client, id, 10*time.Second)
			require.NoError(t, err)
			require.Equal(t, "next", string(value))
		})
	}
}

func TestAHandlerMayStopItsOwnWorkerAndItsJobIsDone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var stop context.CancelFunc
	table := echoTable(func(context.Context, string) ([]byte, error) {
		stop()
		return []byte("done"), nil
	})
	w, err := smallage.NewWorker(b.rdb, smallage.WorkerConfig{Namespace: b.ns, Concurrency: 1, Logger: b.logger()}, table)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	stop = cancel
	id, err := echo.Enqueue(ctx, b.client, textArgs{"x"}, []smallage.Option[textArgs]{echoWith.ResultTTL(time.Minute)})
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	select {
	case err := <-done:
		require.NoError(t, err)
	case <-time.After(15 * time.Second):
		t.Fatal("Run does not return")
	}
	value, err := echo.Lookup(context.Background(), b.client, id)
	require.NoError(t, err)
	require.Equal(t, "done", string(value))
	require.EqualValues(t, 0, b.rdb.XLen(context.Background(), b.key("echo", "stream")).Val())
}

func TestRunReturnsInTimeAlthoughAHandlerIgnoresItsContext(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	release, started := make(chan struct{}), make(chan int, 2)
	t.Cleanup(func() { close(release) })
	var runs atomic.Int64
	table := echoTable(func(context.Context, string) ([]byte, error) {
		n := int(runs.Add(1))
		started <- n
		if n == 1 {
			<-release // and never looks at its context
			return nil, errors.New("too late")
		}
		return []byte("second"), nil
	})
	id, err := echo.Enqueue(ctx, b.client, textArgs{"x"}, []smallage.Option[textArgs]{echoWith.ResultTTL(time.Minute)})
	require.NoError(t, err)
	const drain = 500 * time.Millisecond
	stop := b.work(smallage.WorkerConfig{DrainTimeout: drain}, table)
	require.Equal(t, 1, <-started)
	begin := time.Now()
	stop()
	took := time.Since(begin)
	require.GreaterOrEqual(t, took, drain)
	require.Less(t, took, drain+5*time.Second, "the drain, a second for the cancelled handler, and what a blocking read takes")
	begin = time.Now()
	b.work(smallage.WorkerConfig{}, table)
	require.Equal(t, 2, <-started)
	require.Less(t, time.Since(begin), 5*time.Second, "another worker starts it without waiting for a lease")
	res, err := b.client.Wait(ctx, id, 10*time.Second)
	require.NoError(t, err)
	require.True(t, res.OK(), res)
	require.Equal(t, 1, res.Attempts, "the shutdown cost no attempt")
	release <- struct{}{} // the old run fails, and nobody listens
	eventually(t, func() bool { return b.rdb.XLen(ctx, b.key("echo", "stream")).Val() == 0 }, "the entry is gone")
	require.EqualValues(t, 0, b.rdb.Exists(ctx, b.key("echo", "dead"), b.key("echo", "delayed")).Val())
}

func TestWhatWasReadAheadIsHandedBackAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	const jobs = 50
	for range jobs {
		_, err := echo.Enqueue(ctx, b.client, textArgs{"x"}, nil)
		require.NoError(t, err)
	}
	finish, began := make(chan struct{}), make(chan struct{}, 1)
	slow := echoTable(func(context.Context, string) ([]byte, error) {
		began <- struct{}{}
		<-finish
		return nil, nil
	})
	first := &events{}
	w, err := smallage.NewWorker(b.rdb, smallage.WorkerConfig{Namespace: b.ns, Concurrency: 1, Logger: b.logger(), Observer: first}, slow)
	require.NoError(t, err)
	run, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- w.Run(run) }()
	<-began
	held := func() int64 { return b.rdb.XPending(ctx, b.key("echo", "stream"), "workers").Val().Count }
	eventually(t, func() bool { return held() > 1 }, "something is read ahead")
	readAhead := int(held()) - 1
	cancel()
	eventually(t, func() bool { return len(first.of(smallage.EventReleased, smallage.JobID{})) >= readAhead }, "it is handed back while the other job still runs")

	var deliveries atomic.Int64
	var ran atomic.Int64
	begin := time.Now()
	b.work(smallage.WorkerConfig{Concurrency: 10}, echoTable(func(ctx context.Context, _ string) ([]byte, error) {
		info, _ := smallage.InfoFromContext(ctx)
		deliveries.Add(int64(info.Delivery))
		ran.Add(1)
		return nil, nil
	}))
	eventually(t, func() bool { return ran.Load() == jobs-1 }, "all but the one that runs are run by the next worker")
	t.Logf("%d were read ahead; the next worker was through after %v", readAhead, time.Since(begin))
	require.Less(t, time.Since(begin), 5*time.Second, "far less than a lease")
	require.EqualValues(t, jobs-1, deliveries.Load(), "no delivery was counted")
	close(finish)
	require.NoError(t, <-ended)
	eventually(t, func() bool { return b.rdb.XLen(ctx, b.key("echo", "stream")).Val() == 0 }, "the stream is empty")
}

// slowClaims holds back every call that names a dedup key until it is told to go on.
type slowClaims struct {
	began, goOn chan struct{}
	once        sync.Once
}

func (s *slowClaims) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s *slowClaims) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if strings.Contains(fmt.Sprint(cmd.Args()...), "{d:") {
			s.once.Do(func() { close(s.began) })
			<-s.goOn
		}
		return next(ctx, cmd)
	}
}

func (s *slowClaims) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func TestAJobWhoseClaimIsAnsweredAfterTheDrainIsNotStartedAnyMore(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	slow := &slowClaims{began: make(chan struct{}), goOn: make(chan struct{})}
	rdb := redistest.Shared(t).Client()
	rdb.AddHook(slow)
	var late atomic.Bool
	w, err := smallage.NewWorker(rdb, smallage.WorkerConfig{Namespace: b.ns, DrainTimeout: 100 * time.Millisecond, Logger: b.logger()},
		echoTable(func(context.Context, string) ([]byte, error) {
			late.Store(true)
			return nil, nil
		}))
	require.NoError(t, err)
	run, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- w.Run(run) }()
	id, err := echo.Enqueue(ctx, b.client, textArgs{"x"}, []smallage.Option[textArgs]{echoWith.ResultTTL(time.Minute), echoWith.Dedup("slow")})
	require.NoError(t, err)
	<-slow.began
	cancel()
	time.Sleep(1500 * time.Millisecond) // the drain, and the second that cancelled handlers get
	close(slow.goOn)
	require.NoError(t, <-ended)
	require.False(t, late.Load(), "the handler was called although the worker was done")
	b.work(smallage.WorkerConfig{}, echoTable(func(ctx context.Context, _ string) ([]byte, error) {
		info, _ := smallage.InfoFromContext(ctx)
		return fmt.Append(nil, info.Attempt, info.Delivery), nil
	}))
	value, err := echo.Wait(ctx, b.client, id, 10*time.Second)
	require.NoError(t, err)
	require.Equal(t, "1 1", string(value))
}
