package smallage_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/smallage/smallage/internal/redistest"
	smallage "github.com/smallage/smallage/runtime"
)

func onServerAndCluster(t *testing.T, test func(t *testing.T, b *bench)) {
	t.Helper()
	t.Parallel()
	t.Run("server", func(t *testing.T) {
		t.Parallel()
		test(t, newBenchOn(t, redistest.Start(t).Client()))
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		test(t, newBenchOn(t, redistest.StartCluster(t).Client()))
	})
}

func TestABatchIsInItsQueueInOrderWithTheIDsThatWereReturned(t *testing.T) {
	onServerAndCluster(t, func(t *testing.T, b *bench) {
		ctx := context.Background()
		var batch smallage.Batch
		var want []string
		for i := range 300 {
			id, err := echo.Enqueue(ctx, &batch, textArgs{fmt.Sprint(i)}, nil)
			require.NoError(t, err)
			want = append(want, id.String())
		}
		require.Equal(t, 300, batch.Len())
		require.Empty(t, b.stored("echo"), "nothing is sent before EnqueueBatch")
		require.NoError(t, b.client.EnqueueBatch(ctx, &batch))
		require.Zero(t, batch.Len())
		entries, err := b.rdb.XRange(ctx, b.key("echo", "stream"), "-", "+").Result()
		require.NoError(t, err)
		var got []string
		for _, e := range entries {
			got = append(got, idOf(e))
		}
		require.Equal(t, want, got)
		queues, err := b.rdb.SMembers(ctx, b.ns+":{queues}").Result()
		require.NoError(t, err)
		require.Contains(t, queues, "echo")
		require.NoError(t, b.client.EnqueueBatch(ctx, &batch), "an empty batch is nothing to do")
	})
}

func TestABatchTakesEveryKindOfJobToEveryQueue(t *testing.T) {
	onServerAndCluster(t, func(t *testing.T, b *bench) {
		ctx := context.Background()
		brought, err := smallage.NewJobID()
		require.NoError(t, err)
		for range 2 { // the scripts are unknown to the server at the first, and the id is known to it at the second
			flushScripts(t, b.rdb)
			var batch smallage.Batch
			for _, opts := range [][]smallage.Option[textArgs]{
				nil,
				{echoWith.Delay(time.Hour)},
				{echoWith.ExpiresIn(time.Hour), echoWith.ResultTTL(time.Minute)},
				{echoWith.ID(brought)},
				{echoWith.Queue("other"), echoWith.Dedup("k"), echoWith.Header("a", "b")},
			} {
				_, err := echo.Enqueue(ctx, &batch, textArgs{"x"}, opts)
				require.NoError(t, err)
			}
			require.NoError(t, b.client.EnqueueBatch(ctx, &batch))
		}
		require.Len(t, b.stored("other"), 2)
		stored := b.stored("echo")
		require.Len(t, stored, 2*3+1)
		require.Equal(t, 1, stored[brought.String()], "an id that the caller brought is accepted once")
	})
}

func flushScripts(t *testing.T, rdb redis.UniversalClient) {
	t.Helper()
	ctx := context.Background()
	if cluster, ok := rdb.(*redis.ClusterClient); ok {
		require.NoError(t, cluster.ForEachMaster(ctx, func(ctx context.Context, master *redis.Client) error {
			return master.ScriptFlush(ctx).Err()
		}))
		return
	}
	require.NoError(t, rdb.ScriptFlush(ctx).Err())
}

func TestABatchRefusesWhatAClientRefuses(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	var batch smallage.Batch
	_, err := echo.Enqueue(ctx, &batch, textArgs{"x"}, []smallage.Option[textArgs]{echoWith.Queue("no such {queue}")})
	require.ErrorIs(t, err, smallage.ErrInvalid)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, err = echo.Enqueue(ended, &batch, textArgs{"x"}, nil)
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, batch.Len())
	require.ErrorIs(t, b.client.EnqueueBatch(ctx, nil), smallage.ErrInvalid)

	small, err := smallage.NewClient(b.rdb, smallage.ClientConfig{Namespace: b.ns, MaxArgsBytes: 100})
	require.NoError(t, err)
	first, err := echo.Enqueue(ctx, &batch, textArgs{"fits"}, nil)
	require.NoError(t, err)
	large, err := echo.Enqueue(ctx, &batch, textArgs{strings.Repeat("x", 200)}, nil)
	require.NoError(t, err)
	var failed *smallage.BatchError
	err = small.EnqueueBatch(ctx, &batch)
	require.ErrorAs(t, err, &failed)
	require.ErrorIs(t, err, smallage.ErrTooLarge)
	require.Equal(t, 2, failed.Sent)
	require.Len(t, failed.Failures, 1)
	require.Equal(t, large, failed.Failures[0].Job.ID)
	require.Equal(t, map[string]int{first.String(): 1}, b.stored("echo"))
}

func TestABatchWhoseContextHasEndedSendsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var batch smallage.Batch
	for range 3 {
		_, err := echo.Enqueue(context.Background(), &batch, textArgs{"x"}, nil)
		require.NoError(t, err)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	var failed *smallage.BatchError
	err := b.client.EnqueueBatch(ended, &batch)
	require.ErrorAs(t, err, &failed)
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, smallage.ErrUnconfirmed)
	require.Len(t, failed.Failures, 3)
	require.Empty(t, b.stored("echo"))
}

func TestEachJobOfABatchPassesTheMiddleware(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	refused := errors.New("not this one")
	client, err := smallage.NewClient(b.rdb, smallage.ClientConfig{
		Namespace: b.ns,
		Middleware: []func(smallage.Enqueuer) smallage.Enqueuer{func(next smallage.Enqueuer) smallage.Enqueuer {
			return smallage.EnqueueFunc(func(ctx context.Context, job smallage.Job) (smallage.JobID, error) {
				if strings.Contains(string(job.Args), "bad") {
					return smallage.JobID{}, refused
				}
				job.Headers = map[string]string{"seen": "yes"}
				return next.Enqueue(ctx, job)
			})
		}},
	})
	require.NoError(t, err)
	ctx := context.Background()
	var batch smallage.Batch
	for _, text := range []string{"a", "bad", "c"} {
		_, err := echo.Enqueue(ctx, &batch, textArgs{text}, nil)
		require.NoError(t, err)
	}
	err = client.EnqueueBatch(ctx, &batch)
	require.ErrorIs(t, err, refused)
	entries, err := b.rdb.XRange(ctx, b.key("echo", "stream"), "-", "+").Result()
	require.NoError(t, err)
	require.Len(t, entries, 2)
	for _, e := range entries {
		require.Equal(t, `{"seen":"yes"}`, e.Values["headers"])
	}
}

// told sorts the jobs of a batch by what EnqueueBatch said of them.
func told(t *testing.T, ids []smallage.JobID, err error) (confirmed, unsure, refused map[string]bool) {
	t.Helper()
	confirmed, unsure, refused = map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, id := range ids {
		confirmed[id.String()] = true
	}
	var failed *smallage.BatchError
	if errors.As(err, &failed) {
		for _, f := range failed.Failures {
			id := f.Job.ID.String()
			delete(confirmed, id)
			if errors.Is(f.Err, smallage.ErrUnconfirmed) {
				unsure[id] = true
			} else {
				refused[id] = true
			}
		}
	} else {
		require.NoError(t, err)
	}
	return confirmed, unsure, refused
}

func TestABatchCutAnywhereTellsOfEachJobWhatBecameOfIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	client, proxy := b.throughProxy()
	ctx := context.Background()
	rng := rand.New(rand.NewPCG(3, 4))
	confirmed, unsure, refused := map[string]bool{}, map[string]bool{}, map[string]bool{}
	partial := 0
	for range 60 {
		var batch smallage.Batch
		var ids []smallage.JobID
		for i := range 20 {
			var opts []smallage.Option[textArgs]
			if i%4 == 0 {
				opts = append(opts, echoWith.Delay(time.Hour))
			}
			id, err := echo.Enqueue(ctx, &batch, textArgs{"x"}, opts)
			require.NoError(t, err)
			ids = append(ids, id)
		}
		proxy.CutAfterBytes(rng.IntN(600))
		ok, lost, no := told(t, ids, client.EnqueueBatch(ctx, &batch))
		proxy.CutAfterBytes(-1)
		if len(ok) > 0 && len(lost) > 0 {
			partial++
		}
		for set, more := range map[*map[string]bool]map[string]bool{&confirmed: ok, &unsure: lost, &refused: no} {
			for id := range more {
				(*set)[id] = true
			}
		}
	}
	require.Positive(t, partial, "no batch was cut between two replies: the test proves nothing")
	for id, n := range b.stored("echo") {
		require.Equal(t, 1, n, "job %s", id)
		require.False(t, refused[id], "job %s is stored, and its caller was told that it is not", id)
		delete(confirmed, id)
	}
	require.Empty(t, confirmed, "confirmed, and not stored")
}

func TestConcurrentCallersAreEachToldWhatBecameOfTheirJob(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	client, proxy := b.throughProxy()
	ctx := context.Background()
	var mu sync.Mutex
	confirmed, unsure, refused := map[string]bool{}, map[string]bool{}, 0
	stop := make(chan struct{})
	var cutter sync.WaitGroup
	cutter.Go(func() {
		rng := rand.New(rand.NewPCG(5, 6))
		for {
			select {
			case <-stop:
				return
			case <-time.After(2 * time.Millisecond):
				proxy.CutAfterBytes(rng.IntN(2000))
			}
		}
	})
	var callers sync.WaitGroup
	for caller := range 32 {
		callers.Go(func() {
			for i := range 60 {
				var opts []smallage.Option[textArgs]
				if (caller+i)%5 == 0 {
					opts = append(opts, echoWith.Delay(time.Hour))
				}
				id, err := echo.Enqueue(ctx, client, textArgs{"x"}, opts)
				mu.Lock()
				switch {
				case err == nil:
					confirmed[id.String()] = true
				case errors.Is(err, smallage.ErrUnconfirmed):
					unsure[id.String()] = true
				default:
					refused++
				}
				mu.Unlock()
			}
		})
	}
	callers.Wait()
	close(stop)
	cutter.Wait()
	require.NotEmpty(t, unsure, "no reply was lost: the test proves nothing")
	require.NotEmpty(t, confirmed)
	for id, n := range b.stored("echo") {
		require.Equal(t, 1, n, "job %s", id)
		require.True(t, confirmed[id] || unsure[id], "job %s is stored, and its caller was told that it is not", id)
		delete(confirmed, id)
	}
	require.Empty(t, confirmed, "confirmed, and not stored")
}

// busyClient returns a client all of whose places for sending are taken until the proxy lets go.
func busyClient(t *testing.T, b *bench) (client *smallage.Client, proxy *redistest.Proxy, others *sync.WaitGroup) {
	t.Helper()
	proxy = redistest.NewProxy(t, redistest.Shared(t).Addr())
	rdb := redis.NewClient(&redis.Options{Addr: proxy.Addr(), ReadTimeout: time.Minute})
	t.Cleanup(func() { _ = rdb.Close() })
	client, err := smallage.NewClient(rdb, smallage.ClientConfig{Namespace: b.ns})
	require.NoError(t, err)
	for range 20 { // connections enough that none must be opened while the proxy holds the traffic
		others = &sync.WaitGroup{}
		for range 8 {
			others.Go(func() { _, _ = echo.Enqueue(context.Background(), client, textArgs{"warm"}, nil) })
		}
		others.Wait()
	}
	others = &sync.WaitGroup{}
	before := len(b.stored("echo"))
	proxy.Delay(time.Hour)
	for range 4 {
		others.Go(func() { _, _ = echo.Enqueue(context.Background(), client, textArgs{"held"}, nil) })
	}
	eventually(t, func() bool { return len(b.stored("echo")) == before+4 }, "the places are taken")
	return client, proxy, others
}

func TestACallerThatWaitsForItsTurnLeavesWithItsContextAndSendsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	client, proxy, others := busyClient(t, b)
	before := len(b.stored("echo"))
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	begin := time.Now()
	id, err := echo.Enqueue(ctx, client, textArgs{"x"}, nil)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, smallage.ErrUnconfirmed)
	require.True(t, id.IsZero())
	require.Less(t, time.Since(begin), 5*time.Second)
	proxy.Delay(0)
	proxy.Cut()
	others.Wait()
	_, err = echo.Enqueue(context.Background(), client, textArgs{"after"}, nil)
	require.NoError(t, err)
	require.Len(t, b.stored("echo"), before+1, "what was withdrawn was not sent later")
}

func TestABatchKeepsItsOrderOnAServerThatForgotTheScript(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client()
	client, err := smallage.NewClient(rdb, smallage.ClientConfig{})
	require.NoError(t, err)
	for round := range 2 {
		require.NoError(t, rdb.FlushAll(t.Context()).Err())
		require.NoError(t, rdb.ScriptFlush(t.Context()).Err())
		var batch smallage.Batch
		var sent, stored []string
		for i := range 6 + 600*round { // of one flush, and of two
			job := smallage.Job{Task: "t", Queue: "q", Args: []byte(`{}`)}
			if i%2 == 0 {
				job.ExpiresIn = time.Hour // takes a script
			}
			id, err := batch.Enqueue(t.Context(), job)
			require.NoError(t, err)
			sent = append(sent, id.String())
		}
		require.NoError(t, client.EnqueueBatch(t.Context(), &batch))
		for _, entry := range rdb.XRange(t.Context(), "smallage:{q:q}:stream", "-", "+").Val() {
			stored = append(stored, idOf(entry))
		}
		require.Equal(t, sent, stored)
	}
}
