package smallage_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/smallage/smallage/internal/redistest"
	smallage "github.com/smallage/smallage/runtime"
)

func TestTypedLookUpsTellEveryEndingApart(t *testing.T) {
	t.Parallel()
	b := newWaitBench(t, redistest.Shared(t).Client(), 16)
	task := smallage.Task[textArgs]{Name: "test.Now", Aliases: []string{"test.Before"}}
	ctx := t.Context()
	ended := func(status smallage.Status, fields ...any) smallage.JobID {
		id := mustID(t)
		b.mustEnd(id, status, fields...)
		return id
	}
	owner := mustID(t)
	jobError := func(status smallage.Status, owner smallage.JobID, text string) func(error) {
		return func(err error) {
			var job *smallage.JobError
			require.ErrorAs(t, err, &job)
			require.Equal(t, status, job.Status)
			require.Equal(t, owner, job.Owner)
			require.Equal(t, text, job.Text)
		}
	}
	is := func(target error) func(error) { return func(err error) { require.ErrorIs(t, err, target) } }
	for name, c := range map[string]struct {
		id    smallage.JobID
		value string
		check func(error)
	}{
		"a value":           {ended(smallage.StatusOK, "task", "test.Now", "value", "v"), "v", nil},
		"by an older name":  {ended(smallage.StatusOK, "task", "test.Before", "value", "w"), "w", nil},
		"another task":      {ended(smallage.StatusOK, "task", "test.Other", "value", "v"), "", is(smallage.ErrWrongTask)},
		"another's failure": {ended(smallage.StatusFailed, "task", "test.Other", "error", "e"), "", is(smallage.ErrWrongTask)},
		"a lost value":      {ended(smallage.StatusOK, "task", "test.Now", "lost", "1"), "", is(smallage.ErrValueLost)},
		"a failure":         {ended(smallage.StatusFailed, "task", "test.Now", "error", "no luck"), "", jobError(smallage.StatusFailed, smallage.JobID{}, "no luck")},
		"a duplicate":       {ended(smallage.StatusDuplicate, "task", "test.Now", "owner", owner.String()), "", jobError(smallage.StatusDuplicate, owner, "")},
		"an expiry":         {ended(smallage.StatusExpired, "task", "test.Now"), "", jobError(smallage.StatusExpired, smallage.JobID{}, "")},
		"a cancel":          {ended(smallage.StatusCancelled, "task", "test.Now"), "", jobError(smallage.StatusCancelled, smallage.JobID{}, "")},
		"no outcome at all": {mustID(t), "", is(smallage.ErrNoResult)},
		"the id of no job":  {smallage.JobID{}, "", is(smallage.ErrInvalid)},
	} {
		for _, value := range []func() ([]byte, error){
			func() ([]byte, error) { return task.Lookup(ctx, b.client, c.id) },
			func() ([]byte, error) { return task.Wait(ctx, b.client, c.id, 30*time.Millisecond) },
		} {
			got, err := value()
			if c.check == nil {
				require.NoError(t, err, name)
			} else {
				require.Error(t, err, name)
				c.check(err)
			}
			require.Equal(t, c.value, string(got), name)
		}
	}
}

// A job that is retried is not over, so its waiter waits on.
func TestAWaiterHearsNothingOfAttemptsThatAreRetried(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for name, attempts := range map[string]int{"a success at last": 3, "spent attempts": 2} {
		task := smallage.Task[textArgs]{Name: "test.Flaky" + strings.ReplaceAll(name, " ", ""), Attempts: attempts, Backoff: 200 * time.Millisecond, Queue: strings.ReplaceAll(name, " ", "-")}
		var runs atomic.Int64
		var ids []smallage.JobID
		b.work(smallage.WorkerConfig{}, smallage.NewTable(smallage.HandleValue(&task, func(context.Context, textArgs) ([]byte, error) {
			if runs.Add(1) < 3 {
				return nil, errors.New("not yet")
			}
			return []byte("done"), nil
		})))
		id, err := task.Enqueue(t.Context(), b.client, textArgs{"x"}, []smallage.Option[textArgs]{echoWith.ResultTTL(time.Minute)})
		require.NoError(t, err)
		ids = append(ids, id)
		eventually(t, func() bool { return len(b.events.of(smallage.EventRetried, id)) > 0 }, "it is retried")
		_, err = b.client.Result(t.Context(), id)
		require.ErrorIs(t, err, smallage.ErrNoResult, "nothing is recorded for a retry")
		results, err := b.client.WaitAll(t.Context(), ids, 20*time.Second)
		require.NoError(t, err)
		require.Equal(t, attempts, results[0].Attempts)
		if attempts == 3 {
			require.Equal(t, "done", string(results[0].Value), name)
			continue
		}
		require.Equal(t, smallage.ReasonAttempts, results[0].Reason)
		require.Equal(t, "not yet (attempt 2 of 2)", results[0].Error)
		require.NotEmpty(t, results[0].DeathID)
	}
}

func TestEveryEndingWritesAnOutcome(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := t.Context()
	ttl := echoWith.ResultTTL(time.Minute)
	enqueue := func(opts ...smallage.Option[textArgs]) smallage.JobID {
		id, err := echo.Enqueue(ctx, b.client, textArgs{"x"}, append(opts, ttl))
		require.NoError(t, err)
		return id
	}
	expired := enqueue(echoWith.ExpiresIn(time.Millisecond))
	cancelled := enqueue()
	require.NoError(t, b.client.Cancel(ctx, cancelled))
	malformed := mustID(t)
	require.NoError(t, b.rdb.Do(ctx, "XADD", b.key("echo", "stream"), "*", "v", "1", "id", malformed.String(), "task", "test.Echo",
		"args", "{", "attempt", "1", "result_ttl_ms", "60000").Err())
	time.Sleep(20 * time.Millisecond) // past the expiry
	buried := enqueue(echoWith.Header("bury", "1"))
	long := enqueue(echoWith.Header("long", "1"))
	owner := enqueue(echoWith.Dedup("k"))
	twin := enqueue(echoWith.Dedup("k"))
	b.work(smallage.WorkerConfig{Concurrency: 1}, echoTable(func(ctx context.Context, _ string) ([]byte, error) {
		info, _ := smallage.InfoFromContext(ctx)
		switch {
		case info.Headers["bury"] != "":
			return nil, smallage.Bury(errors.New("hopeless"))
		case info.Headers["long"] != "":
			return nil, smallage.Bury(errors.New(strings.Repeat("long ", 10_000)))
		}
		return []byte("v"), nil
	}))
	for _, c := range []struct {
		id     smallage.JobID
		status smallage.Status
		reason smallage.Reason
		text   string
	}{
		{expired, smallage.StatusExpired, "", "not started in time"},
		{cancelled, smallage.StatusCancelled, "", ""},
		{malformed, smallage.StatusFailed, smallage.ReasonMalformed, "arguments"},
		{buried, smallage.StatusFailed, smallage.ReasonBuried, "hopeless (buried by the handler in attempt 1)"},
		{long, smallage.StatusFailed, smallage.ReasonBuried, "(cut)"},
		{owner, smallage.StatusOK, "", ""},
		{twin, smallage.StatusDuplicate, "", ""},
	} {
		res, err := b.client.Wait(ctx, c.id, 20*time.Second)
		require.NoError(t, err)
		require.Equal(t, c.status, res.Status, res)
		require.Equal(t, c.reason, res.Reason)
		require.Contains(t, res.Error, c.text)
		require.Equal(t, "test.Echo", res.Task)
		if c.id == twin {
			require.Equal(t, owner, res.Owner)
		}
	}
}

func TestAValueThatIsTooLargeFailsTheOutcomeAndNotTheJob(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var runs atomic.Int64
	b.work(smallage.WorkerConfig{MaxValueBytes: 100}, echoTable(func(_ context.Context, text string) ([]byte, error) {
		runs.Add(1)
		return []byte(text), nil
	}))
	opts := []smallage.Option[textArgs]{echoWith.ResultTTL(time.Minute), echoWith.Dedup("large")}
	id, err := echo.Enqueue(t.Context(), b.client, textArgs{strings.Repeat("x", 101)}, opts)
	require.NoError(t, err)
	res, err := b.client.Wait(t.Context(), id, 20*time.Second)
	require.NoError(t, err)
	require.Equal(t, smallage.StatusFailed, res.Status)
	require.Equal(t, smallage.ReasonValue, res.Reason)
	require.Contains(t, res.Error, "101 bytes exceeds WorkerConfig.MaxValueBytes, 100")
	require.Nil(t, res.Value)
	twin, err := echo.Enqueue(t.Context(), b.client, textArgs{"x"}, opts)
	require.NoError(t, err)
	res, err = b.client.Wait(t.Context(), twin, 20*time.Second)
	require.NoError(t, err)
	require.Equal(t, smallage.StatusDuplicate, res.Status, "its side effect is done")
	fits, err := echo.Enqueue(t.Context(), b.client, textArgs{strings.Repeat("x", 100)}, opts[:1])
	require.NoError(t, err)
	res, err = b.client.Wait(t.Context(), fits, 20*time.Second)
	require.NoError(t, err)
	require.Len(t, res.Value, 100)
	require.EqualValues(t, 2, runs.Load())
	eventually(t, func() bool { return b.rdb.XLen(t.Context(), b.key("echo", "stream")).Val() == 0 }, "nothing is left to do")
	require.Zero(t, b.rdb.ZCard(t.Context(), b.key("echo", "dead")).Val(), "it is not dead")
}

// Success replaces everything, nothing replaces success, and otherwise the first stays; there is one token throughout.
func TestOutcomesKeepTheirPrecedence(t *testing.T) {
	t.Parallel()
	b := newWaitBench(t, redistest.Shared(t).Client(), 16)
	ctx := context.Background()
	statuses := []smallage.Status{smallage.StatusOK, smallage.StatusFailed, smallage.StatusDuplicate, smallage.StatusExpired, smallage.StatusCancelled}
	rapid.Check(t, func(r *rapid.T) {
		id, err := smallage.NewJobID()
		require.NoError(r, err)
		var want smallage.Status
		wantText := ""
		for i, step := range rapid.SliceOfN(rapid.IntRange(-1, len(statuses)-1), 1, 8).Draw(r, "steps") {
			if step < 0 {
				require.NoError(r, b.rdb.Del(ctx, b.key(id, "result"), b.key(id, "token")).Err())
				want = ""
				continue
			}
			text := string(rune('a' + i))
			if status := statuses[step]; want == "" || want != smallage.StatusOK && status == smallage.StatusOK {
				want, wantText = status, text
			}
			stands, err := b.end(id, statuses[step], "error", text)
			require.NoError(r, err)
			require.Equal(r, string(want), stands)
			require.EqualValues(r, 1, b.rdb.LLen(ctx, b.key(id, "token")).Val())
			for _, kind := range []string{"result", "token"} {
				require.Positive(r, b.rdb.PTTL(ctx, b.key(id, kind)).Val())
			}
		}
		res, err := b.client.Result(ctx, id)
		if want == "" {
			require.ErrorIs(r, err, smallage.ErrNoResult)
			return
		}
		require.NoError(r, err)
		require.Equal(r, want, res.Status)
		require.Equal(r, wantText, res.Error)
	})
}

func TestAWaiterOfAReplayedJobGetsItsNewOutcome(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := t.Context()
	var mended atomic.Bool
	gate := make(chan struct{})
	task := smallage.Task[textArgs]{Name: "test.Mend", Attempts: 1}
	b.work(smallage.WorkerConfig{}, smallage.NewTable(smallage.HandleValue(&task, func(context.Context, textArgs) ([]byte, error) {
		if !mended.Load() {
			return nil, errors.New("broken")
		}
		<-gate
		return []byte("mended"), nil
	})))
	id, err := task.Enqueue(ctx, b.client, textArgs{"x"}, []smallage.Option[textArgs]{echoWith.ResultTTL(time.Minute)})
	require.NoError(t, err)
	res, err := b.client.Wait(ctx, id, 20*time.Second)
	require.NoError(t, err)
	require.Equal(t, smallage.StatusFailed, res.Status)
	eventually(t, func() bool { return b.rdb.ZCard(ctx, b.key("default", "dead")).Val() == 1 }, "it is dead")
	mended.Store(true)
	require.NoError(t, b.client.Dead().Replay(ctx, id))
	_, err = b.client.Wait(ctx, id, 50*time.Millisecond)
	require.ErrorIs(t, err, smallage.ErrNoResult, "the old outcome is gone")
	time.AfterFunc(50*time.Millisecond, func() { close(gate) })
	value, err := task.Wait(ctx, b.client, id, 20*time.Second)
	require.NoError(t, err)
	require.Equal(t, "mended", string(value))
}
