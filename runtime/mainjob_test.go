package smallage_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/smallage/smallage/internal/redistest"
	smallage "github.com/smallage/smallage/runtime"
	"github.com/smallage/smallage/runtime/embedded"
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

// mainJob is what holds on every server: a real one, the embedded one, and a cluster, which refuses any command whose
// keys are not in one slot.
var mainJob = []struct {
	name string
	test func(*testing.T, *bench)
}{
	{"a job runs and its value reaches the waiter", aJobRunsAndItsValueReachesTheWaiter},
	{"many jobs all run once and leave nothing behind", manyJobsAllRunOnceAndLeaveNothingBehind},
	{"a failing job is retried and then dead with its failure recorded", aFailingJobIsRetriedAndThenDeadWithItsFailureRecorded},
	{"a second job of a dedup key is skipped and its waiter is told", aSecondJobOfADedupKeyIsSkippedAndItsWaiterIsTold},
	{"a retry passes the claim of its own job", aRetryPassesTheClaimOfItsOwnJob},
	{"a delayed job runs when it is due", aDelayedJobRunsWhenItIsDue},
	{"a replay of a dead job runs it", aReplayOfADeadJobRunsIt},
	{"a task that nobody knows waits for a worker that does", aTaskThatNobodyKnowsWaitsForAWorkerThatDoes},
	{"a task that nobody ever knows is dead", aTaskThatNobodyEverKnowsIsDead},
	{"a handler may run far longer than the lease", aHandlerMayRunFarLongerThanTheLease},
	{"headers and middleware reach every attempt", headersAndMiddlewareReachEveryAttempt},
	{"a buried job is dead at once and a timeout is an attempt", aBuriedJobIsDeadAtOnceAndATimeoutIsAnAttempt},
	{"an id brought by the caller is accepted once", anIDBroughtByTheCallerIsAcceptedOnce},
	{"waiting for a result that nobody asked for says so", waitingForAResultThatNobodyAskedForSaysSo},
}

func TestTheMainJobOnARealServer(t *testing.T) {
	t.Parallel()
	runMainJob(t, func() redis.UniversalClient { return redistest.Shared(t).Client() })
}

func TestTheMainJobOnTheEmbeddedServer(t *testing.T) {
	t.Parallel()
	server, err := embedded.Start(embedded.Config{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(server.Close)
	runMainJob(t, func() redis.UniversalClient { return server.Client() })
}

func TestTheMainJobOnACluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	runMainJob(t, func() redis.UniversalClient { return cluster.Client() })
}

func runMainJob(t *testing.T, client func() redis.UniversalClient) {
	for _, c := range mainJob {
		rdb := client()
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(t, newBenchOn(t, rdb))
		})
	}
}

func aJobRunsAndItsValueReachesTheWaiter(t *testing.T, b *bench) {
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

func manyJobsAllRunOnceAndLeaveNothingBehind(t *testing.T, b *bench) {
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

func aFailingJobIsRetriedAndThenDeadWithItsFailureRecorded(t *testing.T, b *bench) {
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

func aSecondJobOfADedupKeyIsSkippedAndItsWaiterIsTold(t *testing.T, b *bench) {
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

func aRetryPassesTheClaimOfItsOwnJob(t *testing.T, b *bench) {
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

func aDelayedJobRunsWhenItIsDue(t *testing.T, b *bench) {
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

func aReplayOfADeadJobRunsIt(t *testing.T, b *bench) {
	ctx := context.Background()
	var mended atomic.Bool
	b.work(smallage.WorkerConfig{}, b.brokenTask("a", &mended))
	id := b.enqueue("a", "x", echoWith.ResultTTL(time.Minute), echoWith.Dedup("a:x"))
	_, err := b.client.Wait(ctx, id, 10*time.Second)
	require.NoError(t, err)
	b.awaitDead("q-a", 1)
	mended.Store(true)
	require.NoError(t, b.client.Dead().Replay(ctx, id))
	res, err := b.client.Wait(ctx, id, 10*time.Second)
	require.NoError(t, err)
	require.True(t, res.OK(), res)
}

func aTaskThatNobodyKnowsWaitsForAWorkerThatDoes(t *testing.T, b *bench) {
	ctx := context.Background()
	other := smallage.Task[textArgs]{Name: "other", Queue: "echo"}
	id, err := other.Enqueue(ctx, b.client, textArgs{"x"}, []smallage.Option[textArgs]{echoWith.ResultTTL(time.Minute)})
	require.NoError(t, err)
	stop := b.work(smallage.WorkerConfig{}, echoTable(func(context.Context, string) ([]byte, error) { return nil, nil }))
	eventually(t, func() bool { return len(b.events.of(smallage.EventPutBack, id)) > 0 }, "it is put back")
	stop() // else chance decides which of the two gets it, and how often it is put back
	b.work(smallage.WorkerConfig{}, smallage.NewTable(smallage.Handle(&other, func(context.Context, textArgs) error { return nil })))
	res, err := b.client.Wait(ctx, id, 30*time.Second)
	require.NoError(t, err)
	require.True(t, res.OK(), res)
	require.Equal(t, 1, res.Attempts, "being unknown costs no attempt")
}

func aTaskThatNobodyEverKnowsIsDead(t *testing.T, b *bench) {
	ctx := context.Background()
	other := smallage.Task[textArgs]{Name: "other", Queue: "echo"}
	id, err := other.Enqueue(ctx, b.client, textArgs{"x"}, []smallage.Option[textArgs]{echoWith.ResultTTL(time.Minute)})
	require.NoError(t, err)
	b.work(smallage.WorkerConfig{UnknownTaskTTL: 500 * time.Millisecond}, echoTable(func(context.Context, string) ([]byte, error) { return nil, nil }))
	res, err := b.client.Wait(ctx, id, 30*time.Second)
	require.NoError(t, err)
	require.Equal(t, smallage.ReasonUnknownTask, res.Reason)
	require.Contains(t, res.Error, `no worker knew the task "other"`)
	eventually(t, func() bool { return b.rdb.XLen(ctx, b.key("echo", "stream")).Val() == 0 }, "the stream is empty")
}

func aHandlerMayRunFarLongerThanTheLease(t *testing.T, b *bench) {
	const lease = 1500 * time.Millisecond
	ctx := context.Background()
	var running, most atomic.Int64
	table := func() smallage.Table {
		return echoTable(func(context.Context, string) ([]byte, error) {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			time.Sleep(3 * lease)
			return nil, nil
		})
	}
	for range 2 {
		b.work(smallage.WorkerConfig{Lease: lease}, table())
	}
	id, err := echo.Enqueue(ctx, b.client, textArgs{"x"}, []smallage.Option[textArgs]{echoWith.ResultTTL(time.Minute)})
	require.NoError(t, err)
	res, err := b.client.Wait(ctx, id, 30*time.Second)
	require.NoError(t, err)
	require.True(t, res.OK(), res)
	require.EqualValues(t, 1, most.Load())
	require.Len(t, b.events.of(smallage.EventStarted, id), 1)
}

func headersAndMiddlewareReachEveryAttempt(t *testing.T, b *bench) {
	ctx := context.Background()
	task := smallage.Task[textArgs]{Name: "test.Trace", Backoff: 10 * time.Millisecond}
	var seen []string
	outer := func(next smallage.Handler) smallage.Handler {
		return func(ctx context.Context, job smallage.JobInfo) ([]byte, error) {
			seen = append(seen, fmt.Sprintf("%s %s %d", job.Task, job.Headers["trace"], job.Attempt))
			return next(ctx, job)
		}
	}
	b.work(smallage.WorkerConfig{Concurrency: 1, Middleware: []func(smallage.Handler) smallage.Handler{outer}},
		smallage.NewTable(smallage.Handle(&task, func(ctx context.Context, _ textArgs) error {
			info, ok := smallage.InfoFromContext(ctx)
			if !ok || info.Headers["trace"] != "t1" {
				return smallage.Bury(errors.New("the headers are gone"))
			}
			if info.Attempt < 3 {
				return smallage.RetryAfter(time.Millisecond, errNoLuck)
			}
			return nil
		})))
	id, err := task.Enqueue(ctx, b.client, textArgs{"x"}, []smallage.Option[textArgs]{echoWith.ResultTTL(time.Minute), echoWith.Header("trace", "t1")})
	require.NoError(t, err)
	res, err := b.client.Wait(ctx, id, 10*time.Second)
	require.NoError(t, err)
	require.True(t, res.OK(), res)
	require.Equal(t, []string{"test.Trace t1 1", "test.Trace t1 2", "test.Trace t1 3"}, seen)
	require.Len(t, b.events.of(smallage.EventRetried, id), 2)
	require.Len(t, b.events.of(smallage.EventStarted, id), 3)
	require.Len(t, b.events.of(smallage.EventDone, id), 1)
}

func aBuriedJobIsDeadAtOnceAndATimeoutIsAnAttempt(t *testing.T, b *bench) {
	ctx := context.Background()
	buried := smallage.Task[textArgs]{Name: "test.Buried", Attempts: 5}
	late := smallage.Task[textArgs]{Name: "test.Late", Attempts: 2, Timeout: 20 * time.Millisecond, Backoff: 10 * time.Millisecond}
	b.work(smallage.WorkerConfig{}, smallage.NewTable(
		smallage.Handle(&buried, func(context.Context, textArgs) error { return smallage.Bury(errNoLuck) }),
		smallage.Handle(&late, func(ctx context.Context, _ textArgs) error {
			<-ctx.Done()
			return context.Cause(ctx)
		})))
	opts := []smallage.Option[textArgs]{echoWith.ResultTTL(time.Minute)}
	id, err := buried.Enqueue(ctx, b.client, textArgs{"x"}, opts)
	require.NoError(t, err)
	res, err := b.client.Wait(ctx, id, 10*time.Second)
	require.NoError(t, err)
	require.Equal(t, smallage.ReasonBuried, res.Reason)
	require.Equal(t, 1, res.Attempts)
	id, err = late.Enqueue(ctx, b.client, textArgs{"x"}, opts)
	require.NoError(t, err)
	res, err = b.client.Wait(ctx, id, 10*time.Second)
	require.NoError(t, err)
	require.Equal(t, smallage.ReasonAttempts, res.Reason)
	require.Equal(t, 2, res.Attempts)
	require.Contains(t, res.Error, "task timeout")
}

func anIDBroughtByTheCallerIsAcceptedOnce(t *testing.T, b *bench) {
	ctx := context.Background()
	id := mustID(t)
	for range 3 {
		got, err := echo.Enqueue(ctx, b.client, textArgs{"x"}, []smallage.Option[textArgs]{echoWith.ID(id)})
		require.NoError(t, err)
		require.Equal(t, id, got)
		_, err = echo.Enqueue(ctx, b.client, textArgs{"y"}, []smallage.Option[textArgs]{echoWith.ID(id), echoWith.Delay(time.Hour)})
		require.NoError(t, err)
	}
	require.EqualValues(t, 1, b.rdb.XLen(ctx, b.key("echo", "stream")).Val())
	require.EqualValues(t, 0, b.rdb.ZCard(ctx, b.key("echo", "delayed")).Val())
	require.Positive(t, b.rdb.PTTL(ctx, b.key("echo", "id:"+id.String())).Val())
}

func waitingForAResultThatNobodyAskedForSaysSo(t *testing.T, b *bench) {
	ctx := context.Background()
	id, err := echo.Enqueue(ctx, b.client, textArgs{"x"}, nil)
	require.NoError(t, err)
	_, err = b.client.Wait(ctx, id, time.Minute)
	require.ErrorIs(t, err, smallage.ErrNoResultRequested)
	require.ErrorIs(t, err, smallage.ErrNoResult)
	_, err = b.client.Result(ctx, id)
	require.ErrorIs(t, err, smallage.ErrNoResultRequested)
	_, err = b.client.Result(ctx, mustID(t))
	require.ErrorIs(t, err, smallage.ErrNoResult)
	require.NotErrorIs(t, err, smallage.ErrNoResultRequested)
}
