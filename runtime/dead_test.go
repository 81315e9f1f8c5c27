package smallage_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	smallage "github.com/smallage/smallage/runtime"
)

var errNoLuck = errors.New("no luck")

// brokenTask fails until mended is set.
func (b *bench) brokenTask(name string, mended *atomic.Bool) smallage.Table {
	task := &smallage.Task[textArgs]{Name: name, Attempts: 1, Queue: "q-" + name}
	return smallage.NewTable(smallage.HandleValue(task, func(ctx context.Context, a textArgs) ([]byte, error) {
		info, _ := smallage.InfoFromContext(ctx)
		if mended.Load() {
			return fmt.Appendf(nil, "%s attempt %d", a.Text, info.Attempt), nil
		}
		return nil, errNoLuck
	}))
}

func (b *bench) enqueue(task string, text string, opts ...smallage.Option[textArgs]) smallage.JobID {
	b.t.Helper()
	t := smallage.Task[textArgs]{Name: task, Queue: "q-" + task}
	id, err := t.Enqueue(context.Background(), b.client, textArgs{text}, opts)
	require.NoError(b.t, err)
	return id
}

func (b *bench) awaitDead(queue string, n int) {
	b.t.Helper()
	eventually(b.t, func() bool { return b.rdb.ZCard(context.Background(), b.key(queue, "dead")).Val() == int64(n) }, "%d dead jobs", n)
}

func TestAReplayedJobHasFreshAttemptsAndANewOutcome(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	var mended atomic.Bool
	b.work(smallage.WorkerConfig{}, b.brokenTask("a", &mended))
	id := b.enqueue("a", "x", echoWith.ResultTTL(time.Minute), echoWith.Dedup("a:x"), echoWith.Header("trace", "1"))
	res, err := b.client.Wait(ctx, id, 10*time.Second)
	require.NoError(t, err)
	require.Equal(t, smallage.StatusFailed, res.Status)
	b.awaitDead("q-a", 1)
	require.EqualValues(t, 0, b.rdb.Exists(ctx, b.ns+":{d:a:x}").Val(), "a dead job holds no claim")

	dead, err := b.client.Dead().Get(ctx, id)
	require.NoError(t, err)
	require.Equal(t, res.DeathID, dead.DeathID)
	require.Equal(t, "a", dead.Task)
	require.Equal(t, smallage.ReasonAttempts, dead.Reason)
	require.JSONEq(t, `{"text":"x"}`, string(dead.Args))
	require.Len(t, dead.History, 1)
	require.Equal(t, "no luck", dead.History[0].Error)
	require.Equal(t, map[string]string{"trace": "1"}, dead.Headers)
	require.WithinDuration(t, time.Now(), dead.DiedAt, time.Minute)

	mended.Store(true)
	require.NoError(t, b.client.Dead().Replay(ctx, id))
	res, err = b.client.Wait(ctx, id, 10*time.Second)
	require.NoError(t, err)
	require.True(t, res.OK(), res)
	require.Equal(t, "x attempt 1", string(res.Value))
	require.ErrorIs(t, b.client.Dead().Replay(ctx, id), smallage.ErrNotDead)
	b.awaitDead("q-a", 0)
	require.EqualValues(t, 0, b.rdb.Exists(ctx, b.key("q-a", "dead:jobs"), b.key("q-a", "dead:ids")).Val())
}

func TestTwoOperatorsReplayingAtOnceRunEachJobOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	var mended atomic.Bool
	stop := b.work(smallage.WorkerConfig{}, b.brokenTask("a", &mended))
	const n = 50
	for i := range n {
		b.enqueue("a", fmt.Sprint(i))
	}
	b.awaitDead("q-a", n)
	stop()
	var moved atomic.Int64
	var operators sync.WaitGroup
	for range 4 {
		operators.Go(func() {
			k, err := b.client.Dead().ReplayAll(ctx, smallage.DeadFilter{Task: "a"})
			if err == nil {
				moved.Add(int64(k))
			}
		})
	}
	operators.Wait()
	require.EqualValues(t, n, moved.Load())
	require.EqualValues(t, n, b.rdb.XLen(ctx, b.key("q-a", "stream")).Val())
}

func TestDeadJobsAreListedInPagesAndByFilter(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	var mended atomic.Bool
	b.work(smallage.WorkerConfig{}, b.brokenTask("a", &mended), b.brokenTask("b", &mended))
	want := map[smallage.JobID]bool{}
	for i := range 30 {
		want[b.enqueue("a", fmt.Sprint(i))] = true
		want[b.enqueue("b", fmt.Sprint(i))] = true
	}
	b.awaitDead("q-a", 30)
	b.awaitDead("q-b", 30)
	after := ""
	for page := 0; ; page++ {
		jobs, next, err := b.client.Dead().List(ctx, smallage.DeadFilter{}, after, 7)
		require.NoError(t, err)
		for _, j := range jobs {
			require.True(t, want[j.ID], "listed twice or never enqueued: %s", j.ID)
			delete(want, j.ID)
		}
		if next == "" {
			break
		}
		require.Len(t, jobs, 7)
		after = next
	}
	require.Empty(t, want)
	for _, c := range []struct {
		filter smallage.DeadFilter
		n      int
	}{
		{smallage.DeadFilter{Task: "a"}, 30},
		{smallage.DeadFilter{Queue: "q-b"}, 30},
		{smallage.DeadFilter{Queue: "q-b", Task: "a"}, 0},
		{smallage.DeadFilter{Reason: smallage.ReasonBuried}, 0},
		{smallage.DeadFilter{Since: time.Now().Add(time.Hour)}, 0},
		{smallage.DeadFilter{Until: time.Now().Add(time.Hour)}, 60},
	} {
		n := 0
		for _, err := range b.client.Dead().All(ctx, c.filter) {
			require.NoError(t, err)
			n++
		}
		require.Equal(t, c.n, n, "%+v", c.filter)
	}
	n, err := b.client.Dead().DeleteAll(ctx, smallage.DeadFilter{Task: "a"})
	require.NoError(t, err)
	require.Equal(t, 30, n)
	n, err = b.client.Dead().Purge(ctx, time.Hour)
	require.NoError(t, err)
	require.Zero(t, n)
	n, err = b.client.Dead().Purge(ctx, 0)
	require.NoError(t, err)
	require.Equal(t, 30, n)
}

func TestAFullDeadLetterQueueDropsItsOldestWithNotice(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	var mended atomic.Bool
	b.work(smallage.WorkerConfig{MaxDead: 5}, b.brokenTask("a", &mended))
	for i := range 12 {
		b.enqueue("a", fmt.Sprint(i))
		eventually(t, func() bool { return len(b.events.of(smallage.EventDead, smallage.JobID{})) == i+1 }, "job %d is dead", i)
	}
	b.awaitDead("q-a", 5)
	require.EqualValues(t, 5, b.rdb.HLen(ctx, b.key("q-a", "dead:jobs")).Val())
	require.EqualValues(t, 5, b.rdb.HLen(ctx, b.key("q-a", "dead:ids")).Val())
	dropped := 0
	eventually(t, func() bool {
		dropped = 0
		for _, e := range b.events.of(smallage.EventDropped, smallage.JobID{}) {
			dropped += e.Count
		}
		return dropped == 7
	}, "seven drops are reported")
	require.Contains(t, b.log.String(), "oldest jobs were dropped")
}

func TestDeadJobsBeyondTheirAgeAreDropped(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var mended atomic.Bool
	b.work(smallage.WorkerConfig{MaxDeadAge: 200 * time.Millisecond, Lease: 300 * time.Millisecond}, b.brokenTask("a", &mended))
	b.enqueue("a", "x")
	eventually(t, func() bool { return len(b.events.of(smallage.EventDropped, smallage.JobID{})) == 1 }, "the drop is reported")
	b.awaitDead("q-a", 0)
}

func TestADeadJobShowsATaskWithSpacesInItsName(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	task := smallage.Task[textArgs]{Name: "send the mail", Queue: "mail", Attempts: 1}
	b.work(smallage.WorkerConfig{}, smallage.NewTable(smallage.Handle(&task, func(context.Context, textArgs) error { return errors.New("no luck") })))
	id, err := task.Enqueue(t.Context(), b.client, textArgs{"x"}, nil)
	require.NoError(t, err)
	b.awaitDead("mail", 1)
	for range 50 {
		jobs, _, err := b.client.Dead().List(t.Context(), smallage.DeadFilter{Task: task.Name}, "", 10)
		require.NoError(t, err)
		require.Len(t, jobs, 1)
		require.Equal(t, id, jobs[0].ID)
		require.JSONEq(t, `{"text":"x"}`, string(jobs[0].Args))
	}
}

func TestMalformedEntriesAreDeadWithTheirBytesAndNeighboursRun(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	b.work(smallage.WorkerConfig{}, echoTable(func(_ context.Context, text string) ([]byte, error) { return []byte(text), nil }))
	id, err := smallage.NewJobID()
	require.NoError(t, err)
	good := func(args string) map[string]any {
		return map[string]any{"job": "1 " + id.String() + " 7 test.Echo " + args}
	}
	for name, values := range map[string]map[string]any{
		"bad JSON":      good(`{"text":`),
		"invalid UTF-8": {"v": "1", "id": "\xff\xfe", "task": "test.Echo", "args": "\x00\xff"},
		"a list":        good(`["x"]`),
		"null":          good(`null`),
		"other type":    good(`{"text":1}`),
		"null argument": good(`{"text":null}`),
		"missing":       good(`{"txt":"x"}`),
		"no task":       {"v": "1", "id": id.String(), "args": `{}`},
		"no version":    {"id": id.String(), "task": "test.Echo", "args": `{"text":"x"}`},
		"nothing":       {"hello": "world"},
		"cut off":       {"job": "1 " + id.String()},
		"empty":         {"job": ""},
		"bad number":    {"v": "1", "id": id.String(), "task": "test.Echo", "args": `{"text":"x"}`, "attempt": "many"},
	} {
		require.NoError(t, b.rdb.XAdd(ctx, &redis.XAddArgs{Stream: b.key("echo", "stream"), Values: values}).Err(), name)
	}
	id2, err := echo.Enqueue(ctx, b.client, textArgs{"neighbour"}, []smallage.Option[textArgs]{echoWith.ResultTTL(time.Minute)})
	require.NoError(t, err)
	value, err := echo.Wait(ctx, b.client, id2, 10*time.Second)
	require.NoError(t, err)
	require.Equal(t, "neighbour", string(value))
	b.awaitDead("echo", 13)
	raw, missing := 0, 0
	for job, err := range b.client.Dead().All(ctx, smallage.DeadFilter{Queue: "echo"}) {
		require.NoError(t, err)
		require.Equal(t, smallage.ReasonMalformed, job.Reason)
		if job.Fields["args"] == "\x00\xff" && job.Fields["id"] == "\xff\xfe" {
			raw++
		}
		if job.Error == `argument "text" is missing; a parameter that older jobs lack must be named in the directive's optional=` {
			missing++
		}
	}
	require.Equal(t, 1, raw, "bytes are preserved")
	require.Equal(t, 2, missing, "a missing argument is named")
	eventually(t, func() bool { return b.rdb.XLen(ctx, b.key("echo", "stream")).Val() == 0 }, "the stream is empty")
}
