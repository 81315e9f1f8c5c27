package smallage_test

import (
	"context"
	"fmt"
	"net"
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

func (b *bench) lines() int { return strings.Count(b.log.String(), "\n") }

func TestAWorkerMayStartBeforeRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := newBenchOn(t, server.Client())
	server.Stop()
	b.work(smallage.WorkerConfig{}, echoTable(func(_ context.Context, text string) ([]byte, error) { return []byte(text), nil }))
	eventually(t, func() bool { return strings.Contains(b.log.String(), "does not answer") }, "the outage is logged")
	server.StartAgain()
	ctx := context.Background()
	id, err := echo.Enqueue(ctx, b.client, textArgs{"x"}, []smallage.Option[textArgs]{echoWith.ResultTTL(time.Minute)})
	require.NoError(t, err)
	begin := time.Now()
	_, err = echo.Wait(ctx, b.client, id, 20*time.Second)
	require.NoError(t, err)
	require.Less(t, time.Since(begin), 10*time.Second, "tries are never more than some seconds apart")
	eventually(t, func() bool { return strings.Contains(b.log.String(), "answers again") }, "so is its end")
	require.Less(t, b.lines(), 6, "the log stays short:\n%s", b.log)
}

func TestAnOutageCostsNoJobAndFewLines(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.AOF())
	b := newBenchOn(t, server.Client())
	ctx := context.Background()
	var runs sync.Map
	begun, finish := make(chan struct{}, 4), make(chan struct{})
	b.work(smallage.WorkerConfig{Concurrency: 4}, echoTable(func(_ context.Context, text string) ([]byte, error) {
		n, _ := runs.LoadOrStore(text, new(atomic.Int64))
		n.(*atomic.Int64).Add(1)
		if strings.HasPrefix(text, "long") {
			begun <- struct{}{}
			<-finish
		}
		return []byte(text), nil
	}))
	var ids []smallage.JobID
	for i := range 4 {
		id, err := echo.Enqueue(ctx, b.client, textArgs{fmt.Sprint("long", i)}, []smallage.Option[textArgs]{echoWith.ResultTTL(time.Minute), echoWith.Dedup(fmt.Sprint("long", i))})
		require.NoError(t, err)
		ids = append(ids, id)
		<-begun
	}
	for i := range 20 {
		id, err := echo.Enqueue(ctx, b.client, textArgs{fmt.Sprint(i)}, []smallage.Option[textArgs]{echoWith.ResultTTL(time.Minute), echoWith.Delay(time.Second)})
		require.NoError(t, err)
		ids = append(ids, id)
	}
	server.Kill()
	close(finish) // the handlers return while Redis is away
	time.Sleep(3 * time.Second)
	server.StartAgain()
	for _, id := range ids {
		res, err := b.client.Wait(ctx, id, 30*time.Second)
		require.NoError(t, err)
		require.True(t, res.OK(), res)
		require.NotEmpty(t, res.Value, "the value survives")
	}
	runs.Range(func(text, n any) bool {
		require.EqualValues(t, 1, n.(*atomic.Int64).Load(), "the handler for %s was run again because of the outage", text)
		return true
	})
	require.Less(t, b.lines(), 8, "the log stays short:\n%s", b.log)
}

func TestLoadingItsDataDoesNotMakeRedisFatal(t *testing.T) {
	t.Parallel()
	// Each key takes a while to load, and commands are answered with LOADING meanwhile.
	server := redistest.Start(t, redistest.AOF(), redistest.Args("--key-load-delay", "2000", "--loading-process-events-interval-bytes", "1024"))
	b := newBenchOn(t, server.Client())
	ctx := context.Background()
	pipe := b.rdb.Pipeline()
	for i := range 1000 {
		pipe.Set(ctx, fmt.Sprint("ballast", i), strings.Repeat("x", 500), 0)
	}
	_, err := pipe.Exec(ctx)
	require.NoError(t, err)
	require.NoError(t, b.rdb.BgRewriteAOF(ctx).Err()) // the delay is for keys of a snapshot, with which the new file begins
	eventually(t, func() bool {
		info := b.rdb.Info(ctx, "persistence").Val()
		return strings.Contains(info, "aof_rewrite_in_progress:0") && strings.Contains(info, "aof_last_bgrewrite_status:ok") && strings.Contains(info, "aof_rewrite_scheduled:0")
	}, "the snapshot is written")
	id, err := echo.Enqueue(ctx, b.client, textArgs{"x"}, []smallage.Option[textArgs]{echoWith.ResultTTL(time.Minute)})
	require.NoError(t, err)
	server.Kill()
	b.work(smallage.WorkerConfig{}, echoTable(func(_ context.Context, text string) ([]byte, error) { return []byte(text), nil }))
	waited := make(chan error, 1)
	go func() {
		_, err := b.client.Wait(ctx, id, 60*time.Second)
		waited <- err
	}()
	begin := time.Now()
	probe := server.ClientWith(redis.Options{MaxRetries: -1})
	loading := make(chan bool, 1)
	stop := make(chan struct{})
	go func() {
		seen := false
		for {
			select {
			case <-stop:
				loading <- seen
				return
			case <-time.After(20 * time.Millisecond):
				if err := probe.Ping(ctx).Err(); err != nil && strings.HasPrefix(err.Error(), "LOADING") {
					seen = true
				}
			}
		}
	}()
	server.StartAgain()
	close(stop)
	require.True(t, <-loading, "it was never loading, so the test proves nothing; it took %v", time.Since(begin))
	require.NoError(t, <-waited)
	require.Less(t, b.lines(), 8, "the log stays short:\n%s", b.log)
}

func TestAnOutageIsNotMetByABusyLoop(t *testing.T) {
	t.Parallel()
	// A machine that takes connections and ends them at once is the fastest way to fail.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var tries atomic.Int64
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			tries.Add(1)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = listener.Close() })
	rdb := redis.NewClient(&redis.Options{Addr: listener.Addr().String()})
	t.Cleanup(func() { _ = rdb.Close() })
	b := newBenchOn(t, rdb)
	stop := b.work(smallage.WorkerConfig{Concurrency: 50, Queues: map[string]int{"a": 1, "b": 1, "c": 1}},
		echoTable(func(context.Context, string) ([]byte, error) { return nil, nil }))
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	for range 5 {
		go func() {
			id, _ := smallage.NewJobID()
			_, _ = b.client.Wait(ctx, id, time.Minute)
		}()
	}
	<-ctx.Done()
	n := tries.Load()
	t.Logf("%d connections in 3 s by 6 loops and 5 waiters", n)
	require.Less(t, n, int64(500))
	require.Positive(t, n)
	require.Less(t, b.lines(), 5, "the log stays short:\n%s", b.log)
	begin := time.Now()
	stop()
	require.Less(t, time.Since(begin), 15*time.Second, "Run returns although Redis is away")
}

func TestAnOutageThatComesAndGoesIsLoggedNowAndThen(t *testing.T) {
	t.Parallel()
	proxy := redistest.NewProxy(t, redistest.Shared(t).Addr())
	rdb := redis.NewClient(&redis.Options{Addr: proxy.Addr(), MaxRetries: -1})
	t.Cleanup(func() { _ = rdb.Close() })
	b := newBenchOn(t, rdb)
	b.work(smallage.WorkerConfig{Lease: time.Second}, echoTable(func(context.Context, string) ([]byte, error) { return nil, nil }))
	for range 20 {
		proxy.Cut()
		time.Sleep(150 * time.Millisecond) // it works again in between
	}
	require.Less(t, b.lines(), 3, "the log stays short:\n%s", b.log)
}

func TestAWriteThatRedisRefusesForLackOfMemoryIsLoggedNowAndThen(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := newBenchOn(t, server.Client())
	ctx := context.Background()
	b.work(smallage.WorkerConfig{Lease: time.Second}, echoTable(func(_ context.Context, text string) ([]byte, error) { return []byte(text), nil }))
	id, err := echo.Enqueue(ctx, b.client, textArgs{"x"}, []smallage.Option[textArgs]{echoWith.ResultTTL(time.Minute), echoWith.Delay(500 * time.Millisecond)})
	require.NoError(t, err)
	require.NoError(t, b.rdb.ConfigSet(ctx, "maxmemory", "1").Err()) // reads work, writes do not
	time.Sleep(3 * time.Second)
	require.NoError(t, b.rdb.ConfigSet(ctx, "maxmemory", "0").Err())
	_, err = echo.Wait(ctx, b.client, id, 20*time.Second)
	require.NoError(t, err)
	require.Less(t, b.lines(), 4, "the log stays short:\n%s", b.log)
}
