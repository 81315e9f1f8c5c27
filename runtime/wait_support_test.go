package smallage_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/smallage/smallage/internal/redistest"
	smallage "github.com/smallage/smallage/runtime"
	"github.com/smallage/smallage/runtime/embedded"
)

// waitBench is a client that waits, and the means to end jobs without a worker.
type waitBench struct {
	t      *testing.T
	rdb    redis.UniversalClient
	ns     string
	client *smallage.Client
}

func newWaitBench(t *testing.T, rdb redis.UniversalClient, conns int) *waitBench {
	t.Helper()
	ns := redistest.Namespace(t)
	client, err := smallage.NewClient(rdb, smallage.ClientConfig{Namespace: ns, MaxWaitConns: conns})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return &waitBench{t, rdb, ns, client}
}

func (b *waitBench) key(id smallage.JobID, kind string) string {
	return b.ns + ":{r:" + id.String() + "}:" + kind
}

// end writes the outcome of a job as a worker does, and returns the status that stands.
func (b *waitBench) end(id smallage.JobID, status smallage.Status, fields ...any) (string, error) {
	ctx := context.Background()
	written, err := b.rdb.Do(ctx, smallage.OutcomeCommand(b.ns, id, status, fields...)...).Int()
	if err != nil || written == 1 {
		return string(status), err
	}
	return b.rdb.HGet(ctx, b.key(id, "result"), "status").Result()
}

func (b *waitBench) mustEnd(id smallage.JobID, status smallage.Status, fields ...any) {
	b.t.Helper()
	_, err := b.end(id, status, fields...)
	require.NoError(b.t, err)
}

// clear removes an outcome as a replay does.
func (b *waitBench) clear(id smallage.JobID) {
	b.t.Helper()
	require.NoError(b.t, b.rdb.Del(context.Background(), b.key(id, "result"), b.key(id, "token")).Err())
}

type waited struct {
	res  smallage.Result
	err  error
	took time.Duration
	at   time.Time // when it returned
}

// wait waits in the background.
func (b *waitBench) wait(ctx context.Context, id smallage.JobID, timeout time.Duration) chan waited {
	done := make(chan waited, 1)
	go func() {
		begin := time.Now()
		res, err := b.client.Wait(ctx, id, timeout)
		done <- waited{res, err, time.Since(begin), time.Now()}
	}()
	return done
}

// listening reports whether so many jobs are blocked on or subscribed to, on a server that nobody else uses.
func listening(rdb *redis.Client, jobs int) bool {
	ctx := context.Background()
	channels := len(rdb.PubSubShardChannels(ctx, "*").Val()) + len(rdb.PubSubChannels(ctx, "*").Val())
	return channels+blocked(rdb) >= jobs
}

// blocked counts the clients that block on a token.
func blocked(rdb *redis.Client) int {
	return strings.Count(rdb.ClientList(context.Background()).Val(), " cmd=blmove ")
}

// The servers that waiting must work on, and by which means.
var waitServers = []struct {
	name string
	make func(t *testing.T) redis.UniversalClient
}{
	{"one server", func(t *testing.T) redis.UniversalClient { return redistest.Shared(t).Client() }},
	{"one server by RESP2", func(t *testing.T) redis.UniversalClient {
		return redistest.Shared(t).ClientWith(redis.Options{Protocol: 2})
	}},
	{"a server without sharded channels", func(t *testing.T) redis.UniversalClient { return olderServer(t).Client() }},
	{"a cluster", func(t *testing.T) redis.UniversalClient { return redistest.StartCluster(t).Client() }},
	{"a cluster by RESP2, reading from replicas", func(t *testing.T) redis.UniversalClient {
		rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: redistest.StartCluster(t).Addrs(), Protocol: 2, ReadOnly: true})
		t.Cleanup(func() { _ = rdb.Close() })
		return rdb
	}},
	{"the embedded server", func(t *testing.T) redis.UniversalClient {
		server, err := embedded.Start(embedded.Config{Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		t.Cleanup(server.Close)
		return server.Client()
	}},
}

// olderServer is what Redis 6.2 is to waits: a server that knows no sharded channels.
func olderServer(t *testing.T) *redistest.Server {
	return redistest.Start(t, redistest.Args("--rename-command", "SSUBSCRIBE", "", "--rename-command", "SPUBLISH", "",
		"--rename-command", "SUNSUBSCRIBE", ""))
}

// behind returns a client whose connections the proxy can break.
func behind(t *testing.T, proxy *redistest.Proxy) *redis.Client {
	rdb := redis.NewClient(&redis.Options{Addr: proxy.Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}
