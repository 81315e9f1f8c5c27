package smallage_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	smallage "github.com/smallage/smallage/runtime"
)

func TestEnqueueMiddlewareWrapsEveryJobOutermostFirst(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var order []string
	tag := func(name string) func(smallage.Enqueuer) smallage.Enqueuer {
		return func(next smallage.Enqueuer) smallage.Enqueuer {
			return smallage.EnqueueFunc(func(ctx context.Context, job smallage.Job) (smallage.JobID, error) {
				order = append(order, name)
				if job.Headers == nil {
					job.Headers = map[string]string{}
				}
				job.Headers["from"] += name
				return next.Enqueue(ctx, job)
			})
		}
	}
	refuse := errors.New("not today")
	client, err := smallage.NewClient(b.rdb, smallage.ClientConfig{
		Namespace: b.ns, Observer: b.events,
		Middleware: []func(smallage.Enqueuer) smallage.Enqueuer{tag("a"), tag("b"), func(next smallage.Enqueuer) smallage.Enqueuer {
			return smallage.EnqueueFunc(func(ctx context.Context, job smallage.Job) (smallage.JobID, error) {
				if job.Task == "refused" {
					return smallage.JobID{}, refuse
				}
				return next.Enqueue(ctx, job)
			})
		}},
	})
	require.NoError(t, err)
	headers := make(chan map[string]string, 1)
	b.work(smallage.WorkerConfig{}, echoTable(func(ctx context.Context, _ string) ([]byte, error) {
		info, _ := smallage.InfoFromContext(ctx)
		headers <- info.Headers
		return nil, nil
	}))
	ctx := context.Background()
	id, err := echo.Enqueue(ctx, client, textArgs{"x"}, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, order)
	require.Equal(t, map[string]string{"from": "ab"}, <-headers)
	require.Len(t, b.events.of(smallage.EventEnqueued, id), 1)
	refused := smallage.Task[textArgs]{Name: "refused"}
	_, err = refused.Enqueue(ctx, client, textArgs{"x"}, nil)
	require.ErrorIs(t, err, refuse)
}

func TestAMiddlewareThatLosesTheContextFailsTheAttemptWithAReason(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	lose := func(next smallage.Handler) smallage.Handler {
		return func(_ context.Context, job smallage.JobInfo) ([]byte, error) { return next(context.Background(), job) }
	}
	task := smallage.Task[textArgs]{Name: "lost", Attempts: 1}
	b.work(smallage.WorkerConfig{Middleware: []func(smallage.Handler) smallage.Handler{lose}},
		smallage.NewTable(smallage.Handle(&task, func(context.Context, textArgs) error { return nil })))
	ctx := context.Background()
	id, err := task.Enqueue(ctx, b.client, textArgs{"x"}, []smallage.Option[textArgs]{echoWith.ResultTTL(time.Minute)})
	require.NoError(t, err)
	res, err := b.client.Wait(ctx, id, 10*time.Second)
	require.NoError(t, err)
	require.Contains(t, res.Error, "a middleware replaced the handler's context; derive from the one it was given")
}

func TestAHandlerThatIgnoresItsTimeoutKeepsItsSlotAndIsReportedOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const lease = 1500 * time.Millisecond
	release := make(chan struct{})
	task := smallage.Task[textArgs]{Name: "stuck", Attempts: 1, Timeout: 10 * time.Millisecond}
	b.work(smallage.WorkerConfig{Lease: lease}, smallage.NewTable(smallage.Handle(&task, func(context.Context, textArgs) error {
		<-release
		return errNoLuck
	})))
	ctx := context.Background()
	id, err := task.Enqueue(ctx, b.client, textArgs{"x"}, []smallage.Option[textArgs]{echoWith.ResultTTL(time.Minute)})
	require.NoError(t, err)
	eventually(t, func() bool { return len(b.events.of(smallage.EventStuck, id)) == 1 }, "it is reported")
	time.Sleep(2 * lease) // which it keeps
	require.Len(t, b.events.of(smallage.EventStuck, id), 1)
	require.Empty(t, b.events.of(smallage.EventReclaimed, id))
	close(release)
	res, err := b.client.Wait(ctx, id, 10*time.Second)
	require.NoError(t, err)
	require.Equal(t, smallage.StatusFailed, res.Status)
	require.Equal(t, 1, res.Attempts)
}

func TestAValueThatCannotBeKeptFailsTheOutcomeWithoutAnotherRun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		table func(t *smallage.Task[textArgs], ran chan<- struct{}) smallage.Entry
		want  string
	}{
		"too large": {func(task *smallage.Task[textArgs], ran chan<- struct{}) smallage.Entry {
			return smallage.HandleValue(task, func(context.Context, textArgs) ([]byte, error) {
				ran <- struct{}{}
				return make([]byte, 101), nil
			})
		}, "its value of 101 bytes exceeds WorkerConfig.MaxValueBytes, 100"},
		"cannot be encoded": {func(task *smallage.Task[textArgs], ran chan<- struct{}) smallage.Entry {
			return smallage.HandleBinary(task, func(context.Context, textArgs) (brokenValue, error) {
				ran <- struct{}{}
				return brokenValue{}, nil
			})
		}, "its value cannot be encoded: broken on purpose"},
		"nil": {func(task *smallage.Task[textArgs], ran chan<- struct{}) smallage.Entry {
			return smallage.HandleBinary(task, func(context.Context, textArgs) (*brokenValue, error) {
				ran <- struct{}{}
				return nil, nil
			})
		}, "its value cannot be encoded: it is nil"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			ran := make(chan struct{}, 10)
			task := &smallage.Task[textArgs]{Name: "value"}
			b.work(smallage.WorkerConfig{MaxValueBytes: 100}, smallage.NewTable(c.table(task, ran)))
			ctx := context.Background()
			id, err := task.Enqueue(ctx, b.client, textArgs{"x"}, []smallage.Option[textArgs]{echoWith.ResultTTL(time.Minute), echoWith.Dedup("value")})
			require.NoError(t, err)
			res, err := b.client.Wait(ctx, id, 10*time.Second)
			require.NoError(t, err)
			require.Equal(t, smallage.StatusFailed, res.Status)
			require.Equal(t, smallage.ReasonValue, res.Reason)
			require.Contains(t, res.Error, c.want)
			eventually(t, func() bool { return b.rdb.XLen(ctx, b.key("default", "stream")).Val() == 0 }, "it has ended")
			require.Len(t, ran, 1)
			require.Equal(t, "done:"+id.String(), b.rdb.Get(ctx, b.ns+":{d:value}").Val())
			require.EqualValues(t, 0, b.rdb.Exists(ctx, b.key("default", "dead")).Val())
		})
	}
}

type brokenValue struct{}

func (brokenValue) MarshalBinary() ([]byte, error) { return nil, errors.New("broken on purpose") }
