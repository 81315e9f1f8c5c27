package smallage_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/smallage/smallage/internal/redistest"
	smallage "github.com/smallage/smallage/runtime"
)

// infoNumber reads one number of the server's INFO.
func infoNumber(t *testing.T, rdb *redis.Client, name string) int {
	t.Helper()
	info, err := rdb.Info(context.Background(), "everything").Result()
	require.NoError(t, err)
	for line := range strings.Lines(info) {
		if text, ok := strings.CutPrefix(line, name+":"); ok {
			n, err := strconv.Atoi(strings.TrimSpace(text))
			require.NoError(t, err)
			return n
		}
	}
	require.Fail(t, "no such number", name)
	return 0
}

// These do not run beside others: they count goroutines.
func TestCancelledWaitsLeaveNothingBehind(t *testing.T) {
	server := redistest.Start(t)
	control := server.Client()
	require.NoError(t, control.Ping(t.Context()).Err())
	rdb := server.ClientWith(redis.Options{PoolSize: 3, PipelinePoolSize: -1, ReadTimeout: time.Second})
	b := newWaitBench(t, rdb, 16)
	before := goleak.IgnoreCurrent()
	idle := infoNumber(t, control, "connected_clients")

	ctx, cancel := context.WithCancel(t.Context())
	var waits []chan waited
	for range 1000 {
		waits = append(waits, b.wait(ctx, mustID(t), time.Minute))
	}
	eventually(t, func() bool { return listening(control, 1000) }, "all listen")
	require.LessOrEqual(t, infoNumber(t, control, "connected_clients")-idle, 3+16)
	cancelled := time.Now()
	cancel()
	for _, done := range waits {
		require.ErrorIs(t, (<-done).err, context.Canceled)
	}
	require.Less(t, time.Since(cancelled), promptly)
	for range 100 { // one after another, each on a connection that blocks
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Millisecond)
		_, err := b.client.Wait(ctx, mustID(t), time.Minute)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		cancel()
	}
	eventually(t, func() bool { return blocked(control) == 0 }, "nobody blocks")
	eventually(t, func() bool { return infoNumber(t, control, "connected_clients")-idle <= 3 }, "only the pool is connected")
	eventually(t, func() bool { return len(control.PubSubShardChannels(t.Context(), "*").Val()) == 0 }, "nobody is subscribed")
	eventually(t, func() bool { return goleak.Find(before) == nil }, "no goroutine is left, with the client still open")

	id := mustID(t) // and it works as before
	done := b.wait(t.Context(), id, time.Minute)
	b.mustEnd(id, smallage.StatusOK)
	require.NoError(t, (<-done).err)
}

func TestTenThousandWaitsTakeFewConnections(t *testing.T) {
	t.Parallel()
	jobs := 10_000
	if raceEnabled {
		jobs = 2_000 // the race detector takes few goroutines
	}
	server := redistest.Start(t)
	control := server.Client()
	require.NoError(t, control.Ping(t.Context()).Err())
	idle := infoNumber(t, control, "connected_clients")
	b := newWaitBench(t, server.ClientWith(redis.Options{PoolSize: 2, PipelinePoolSize: -1}), 16)
	ids := make([]smallage.JobID, jobs)
	var failed atomic.Int64
	var waits sync.WaitGroup
	for i := range ids {
		ids[i] = mustID(t)
		waits.Go(func() {
			res, err := b.client.Wait(context.Background(), ids[i], time.Minute)
			if err != nil || string(res.Value) != strconv.Itoa(i) {
				failed.Add(1)
			}
		})
	}
	began := time.Now()
	eventually(t, func() bool { return listening(control, jobs) }, "all listen")
	t.Logf("%d waits listen after %v", jobs, time.Since(began))
	require.LessOrEqual(t, infoNumber(t, control, "connected_clients")-idle, 2+16)
	commands := infoNumber(t, control, "total_commands_processed")
	began = time.Now()
	time.Sleep(time.Second)
	perSecond := float64(infoNumber(t, control, "total_commands_processed")-commands) / time.Since(began).Seconds()
	require.Less(t, perSecond, float64(jobs), "they do not poll: each looks again once in several seconds")

	ends := make(chan int, jobs)
	for i := range ids {
		ends <- i
	}
	close(ends)
	began = time.Now()
	enqueuer := newWaitBench(t, control, 1)
	for range 4 {
		go func() {
			for i := range ends {
				if _, err := (&waitBench{rdb: control, ns: b.ns}).end(ids[i], smallage.StatusOK, "value", strconv.Itoa(i)); err != nil {
					failed.Add(1)
				}
			}
		}()
	}
	_, err := echo.Enqueue(t.Context(), enqueuer.client, textArgs{"x"}, nil) // beside all that
	require.NoError(t, err)
	waits.Wait()
	t.Logf("all have got their outcomes after %v; %.0f commands a second while they waited", time.Since(began), perSecond)
	require.Zero(t, failed.Load())
}

func TestWaitersLeaveAPoolOfThreeToTheApplication(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	rdb := redis.NewClient(&redis.Options{Addr: proxy.Addr(), PoolSize: 3, PoolTimeout: time.Second, ReadTimeout: time.Second, MaxRetries: -1})
	t.Cleanup(func() { _ = rdb.Close() })
	b := newWaitBench(t, rdb, 16)
	var waits []chan waited
	var ids []smallage.JobID
	for range 10 {
		ids = append(ids, mustID(t))
		waits = append(waits, b.wait(t.Context(), ids[len(ids)-1], time.Minute))
	}
	eventually(t, func() bool { return listening(server.Client(), 10) }, "all listen")
	time.Sleep(200 * time.Millisecond)
	connected := proxy.Accepted()
	for until := time.Now().Add(2500 * time.Millisecond); time.Now().Before(until); { // longer than the read timeout
		_, err := echo.Enqueue(t.Context(), b.client, textArgs{"x"}, nil)
		require.NoError(t, err)
		time.Sleep(5 * time.Millisecond)
	}
	require.LessOrEqual(t, proxy.Accepted()-connected, 3, "no connection was lost and made anew")
	for i, id := range ids {
		b.mustEnd(id, smallage.StatusOK, "value", fmt.Sprint(i))
		got := <-waits[i]
		require.NoError(t, got.err)
		require.Equal(t, fmt.Sprint(i), string(got.res.Value))
	}
}

func TestAThousandJobsAwaitedEarlyAndLateAllAnswerAtOnce(t *testing.T) {
	t.Parallel()
	b := newBenchOn(t, redistest.Start(t).Client())
	b.work(smallage.WorkerConfig{Concurrency: 20}, echoTable(func(context.Context, string) ([]byte, error) { return nil, nil }))
	for i := range 1000 {
		id, err := echo.Enqueue(t.Context(), b.client, textArgs{"x"}, []smallage.Option[textArgs]{echoWith.ResultTTL(time.Minute)})
		require.NoError(t, err)
		if i%2 == 1 {
			time.Sleep(time.Duration(i%7) * 200 * time.Microsecond)
		}
		begin := time.Now()
		res, err := b.client.Wait(t.Context(), id, 10*time.Second)
		require.NoError(t, err)
		require.True(t, res.OK())
		require.Less(t, time.Since(begin), 5*time.Second)
	}
}

func TestTenThousandOutcomesExpireAndNoneIsEverWithoutATTL(t *testing.T) {
	t.Parallel()
	jobs := 10_000
	if raceEnabled {
		jobs = 2_000
	}
	b := newBenchOn(t, redistest.Start(t).Client())
	task := smallage.Task[textArgs]{Name: "test.Half", Attempts: 1}
	table := func() smallage.Table {
		return smallage.NewTable(smallage.HandleValue(&task, func(_ context.Context, a textArgs) ([]byte, error) {
			if strings.HasPrefix(a.Text, "fail") {
				return nil, errors.New("no luck")
			}
			return []byte(a.Text), nil
		}))
	}
	b.work(smallage.WorkerConfig{Concurrency: 100}, table())
	var awaited []smallage.JobID
	for i := range jobs {
		text := "ok"
		if i%2 == 1 {
			text = "fail"
		}
		var opts []smallage.Option[textArgs]
		if i%10 != 9 {
			opts = append(opts, echoWith.ResultTTL(2*time.Second))
		}
		id, err := task.Enqueue(t.Context(), b.client, textArgs{text}, opts)
		require.NoError(t, err)
		if i%10 < 5 {
			awaited = append(awaited, id)
		}
		if len(awaited) == 100 {
			results, err := b.client.WaitAll(t.Context(), awaited, time.Minute)
			require.NoError(t, err)
			for _, res := range results {
				require.False(t, res.Missing())
			}
			awaited = nil
			redistest.RequireAllKeysHaveTTL(t, b.rdb, b.ns+":{r:*")
		}
	}
	eventually(t, func() bool { return b.rdb.XLen(t.Context(), b.key("default", "stream")).Val() == 0 }, "all jobs have ended")
	redistest.RequireAllKeysHaveTTL(t, b.rdb, b.ns+":{r:*")
	eventually(t, func() bool { return len(redistest.Keys(t, b.rdb, b.ns+":{r:*")) == 0 }, "no outcome and no token is left")
}
