package smallage_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/smallage/smallage/internal/redistest"
	smallage "github.com/smallage/smallage/runtime"
)

// addEntry puts an entry into a queue's stream as it is.
func addEntry(t *testing.T, b *bench, queue string, fields map[string]any) {
	t.Helper()
	require.NoError(t, b.rdb.XAdd(context.Background(), &redis.XAddArgs{Stream: b.key(queue, "stream"), Values: fields}).Err())
}

func TestAClaimOutlivesARunThatIsLongerThanTheWindow(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	running, release := make(chan struct{}), make(chan struct{})
	b.work(smallage.WorkerConfig{DedupTTL: 100 * time.Millisecond, Lease: 400 * time.Millisecond}, echoTable(func(_ context.Context, text string) ([]byte, error) {
		close(running)
		<-release
		return nil, nil
	}))
	first := b.gated("long", "a")
	<-running
	least := time.Hour
	for end := time.Now().Add(4 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		info, err := b.client.Dedup(context.Background(), "long")
		require.NoError(t, err)
		require.Equal(t, first, info.Owner)
		least = min(least, info.Remaining)
	}
	require.Greater(t, least, 2*time.Second, "what is left covers a takeover: a lease and two looks at the queue")
	b.requireDuplicate(b.gated("long", "b"), first, "long")
	close(release)
	require.True(t, b.outcome(first).OK())
	require.Empty(t, b.events.of(smallage.EventClaimLost, smallage.JobID{}))
}

func TestAClaimOutlivesTheDelayBeforeTheNextAttempt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.work(smallage.WorkerConfig{DedupTTL: time.Second}, echoTable(func(_ context.Context, text string) ([]byte, error) {
		return nil, smallage.RetryAfter(48*time.Hour, errors.New("not now"))
	}))
	ctx := context.Background()
	first := b.gated("delayed", "a")
	eventually(t, func() bool { return b.rdb.ZCard(ctx, b.key("echo", "delayed")).Val() == 1 }, "it waits for its next attempt")
	info, err := b.client.Dedup(ctx, "delayed")
	require.NoError(t, err)
	require.Equal(t, smallage.DedupClaimed, info.State)
	require.Greater(t, info.Remaining, 48*time.Hour)
	b.requireDuplicate(b.gated("delayed", "b"), first, "delayed")
}

func TestAClaimOutlivesTheDelaysOfATaskThatNobodyKnows(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	stop := b.work(smallage.WorkerConfig{DedupTTL: time.Minute}, echoTable(func(context.Context, string) ([]byte, error) {
		return nil, smallage.RetryAfter(500*time.Millisecond, errors.New("not now"))
	}))
	first := b.gated("unknown", "a")
	eventually(t, func() bool { return len(b.events.of(smallage.EventRetried, first)) == 1 }, "its first attempt fails")
	eventually(t, func() bool { return b.rdb.ZCard(ctx, b.key("echo", "delayed")).Val() == 1 }, "it waits for its next attempt")
	stop()
	other := smallage.Task[textArgs]{Name: "test.Other", Queue: "echo"}
	stop = b.work(smallage.WorkerConfig{DedupTTL: time.Hour}, smallage.NewTable(
		smallage.Handle(&other, func(context.Context, textArgs) error { return nil })))
	eventually(t, func() bool { return len(b.events.of(smallage.EventPutBack, first)) > 0 }, "a worker that does not know it puts it back")
	info, err := b.client.Dedup(ctx, "unknown")
	require.NoError(t, err)
	require.Equal(t, first, info.Owner)
	require.Greater(t, info.Remaining, time.Hour)
	stop()
}

// lostClaim runs a job whose first attempt fails, takes its claim away, and lets another job have the key where rival
// is set. It returns both jobs once the first has ended.
func lostClaim(t *testing.T, b *bench, rival bool) (first, second smallage.JobID, runs int64) {
	t.Helper()
	var n atomic.Int64
	task := smallage.Task[textArgs]{Name: "test.Loses", Backoff: time.Hour, BackoffMax: time.Hour}
	b.work(smallage.WorkerConfig{}, smallage.NewTable(smallage.Handle(&task, func(_ context.Context, a textArgs) error {
		if a.Text == "first" && n.Add(1) == 1 {
			return errors.New("the first attempt fails")
		}
		return nil
	})))
	ctx := context.Background()
	opts := []smallage.Option[textArgs]{echoWith.Dedup("loses"), echoWith.ResultTTL(time.Minute)}
	first, err := task.Enqueue(ctx, b.client, textArgs{"first"}, opts)
	require.NoError(t, err)
	eventually(t, func() bool { return b.rdb.ZCard(ctx, b.key("default", "delayed")).Val() == 1 }, "it waits for its next attempt")
	require.EqualValues(t, 1, b.rdb.Del(ctx, b.ns+":{d:loses}").Val())
	if rival {
		second, err = task.Enqueue(ctx, b.client, textArgs{"second"}, opts)
		require.NoError(t, err)
		require.True(t, b.outcome(second).OK())
	}
	require.NoError(t, b.rdb.ZAdd(ctx, b.key("default", "delayed"), redis.Z{Score: 0, Member: first.String()}).Err())
	b.outcome(first)
	return first, second, n.Load()
}

func TestAJobWhoseClaimWasLostClaimsAgainAndSaysSo(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first, _, runs := lostClaim(t, b, false)
	require.True(t, b.outcome(first).OK())
	require.EqualValues(t, 2, runs)
	require.Contains(t, b.log.String(), "the dedup claim of a job was lost between its attempts")
	lost := b.events.of(smallage.EventClaimLost, first)
	require.Len(t, lost, 1)
	require.True(t, lost[0].Owner.IsZero())
}

func TestAJobWhoseClaimAnotherTookIsADuplicateAndSaysSo(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first, second, runs := lostClaim(t, b, true)
	res := b.outcome(first)
	require.Equal(t, smallage.StatusDuplicate, res.Status)
	require.Equal(t, second, res.Owner)
	require.EqualValues(t, 1, runs)
	require.Contains(t, b.log.String(), "the dedup claim of a job was lost between its attempts; another job has claimed it since")
	info, err := b.client.Dedup(context.Background(), "loses")
	require.NoError(t, err)
	require.Equal(t, second, info.Owner)
}

func TestAClaimLostInTheMiddleOfARunIsReportedAndNotTakenBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	running, release := make(chan struct{}, 2), make(chan struct{})
	b.work(smallage.WorkerConfig{Lease: time.Second}, echoTable(func(context.Context, string) ([]byte, error) {
		running <- struct{}{}
		<-release
		return nil, nil
	}))
	ctx := context.Background()
	first := b.gated("evicted", "a")
	<-running
	require.EqualValues(t, 1, b.rdb.Del(ctx, b.ns+":{d:evicted}").Val())
	second := b.gated("evicted", "b")
	<-running // beside the first: the key is what keeps them apart
	eventually(t, func() bool { return len(b.events.of(smallage.EventClaimLost, first)) == 1 }, "the loss is reported while the job runs")
	require.Equal(t, second, b.events.of(smallage.EventClaimLost, first)[0].Owner)
	require.Contains(t, b.log.String(), "the dedup claim of a running job is lost")
	close(release)
	require.True(t, b.outcome(first).OK())
	require.True(t, b.outcome(second).OK())
	info, err := b.client.Dedup(ctx, "evicted")
	require.NoError(t, err)
	require.Equal(t, second, info.Owner)
}

// breaker makes the script calls on dedup keys fail while it is closed.
type breaker struct {
	failing atomic.Bool
	failed  atomic.Int64
}

func (h *breaker) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *breaker) refuses(cmd redis.Cmder) bool {
	args := cmd.Args()
	if !h.failing.Load() || len(args) < 4 {
		return false
	}
	var key any
	switch cmd.Name() {
	case "set":
		key = args[1]
	case "evalsha":
		key = args[3]
	}
	if name, _ := key.(string); !strings.HasSuffix(name, "}") { // of a dedup key
		return false
	}
	h.failed.Add(1)
	cmd.SetErr(io.ErrUnexpectedEOF)
	return true
}

func (h *breaker) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if h.refuses(cmd) {
			return cmd.Err()
		}
		return next(ctx, cmd)
	}
}

func (h *breaker) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			if h.refuses(cmd) {
				for _, cmd := range cmds {
					cmd.SetErr(io.ErrUnexpectedEOF)
				}
				return io.ErrUnexpectedEOF
			}
		}
		return next(ctx, cmds)
	}
}

func TestAnErrorWhileClaimingIsNotADuplicate(t *testing.T) {
	t.Parallel()
	rdb, h := redistest.Shared(t).Client(), &breaker{}
	rdb.AddHook(h)
	b := newBenchOn(t, rdb)
	h.failing.Store(true)
	var runs atomic.Int64
	b.work(smallage.WorkerConfig{}, echoTable(func(context.Context, string) ([]byte, error) {
		runs.Add(1)
		return nil, nil
	}))
	id := b.gated("unreachable", "a")
	eventually(t, func() bool { return h.failed.Load() >= 3 }, "the claim is tried again")
	require.Zero(t, runs.Load(), "nothing runs without its claim")
	h.failing.Store(false)
	require.True(t, b.outcome(id).OK())
	require.EqualValues(t, 1, runs.Load())
	require.Empty(t, b.events.of(smallage.EventSkipped, id))
	require.Empty(t, b.events.of(smallage.EventDead, id))
}

func TestAJobThatCannotBeClaimedIsLeftToOthersWhenItsWorkerStops(t *testing.T) {
	t.Parallel()
	broken, h := redistest.Shared(t).Client(), &breaker{}
	broken.AddHook(h)
	h.failing.Store(true)
	b := newBenchOn(t, broken)
	table := echoTable(func(_ context.Context, text string) ([]byte, error) { return []byte(text), nil })
	stop := b.work(smallage.WorkerConfig{}, table)
	id := b.gated("stays", "a")
	eventually(t, func() bool { return h.failed.Load() >= 2 }, "the claim is tried again")
	stop()
	require.EqualValues(t, 1, b.rdb.XLen(context.Background(), b.key("echo", "stream")).Val(), "the job is still there")
	b.rdb = redistest.Shared(t).Client()
	b.work(smallage.WorkerConfig{}, table)
	res := b.outcome(id)
	require.True(t, res.OK(), res)
	require.Equal(t, "a", string(res.Value))
	require.Equal(t, 1, res.Attempts)
}
