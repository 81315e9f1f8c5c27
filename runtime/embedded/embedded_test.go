package embedded_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/smallage/smallage/internal/redistest"
	"github.com/smallage/smallage/runtime/embedded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(redistest.Main(m)) }

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func start(t *testing.T) *embedded.Server {
	t.Helper()
	s, err := embedded.Start(embedded.Config{Logger: quiet()})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

func TestStartSaysInOneLineThatNothingIsKept(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s, err := embedded.Start(embedded.Config{Logger: slog.New(slog.NewTextHandler(&out, nil))})
	require.NoError(t, err)
	defer s.Close()
	require.NoError(t, s.Client().Ping(t.Context()).Err())
	require.Equal(t, 1, strings.Count(out.String(), "\n"), out.String())
	require.Contains(t, out.String(), "development only")
	require.Contains(t, out.String(), "keeps nothing")
	require.Contains(t, out.String(), s.Addr())
}

// The default writer is the process's own standard error, so this test runs itself once more to look at it.
func TestStartWritesToStandardErrorByDefault(t *testing.T) {
	t.Parallel()
	const variable = "EMBEDDED_SAYS"
	if os.Getenv(variable) != "" {
		s, err := embedded.Start(embedded.Config{})
		require.NoError(t, err)
		s.Close()
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), variable+"=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	require.NoError(t, cmd.Run())
	require.Regexp(t, `^smallage: embedded server on 127\.0\.0\.1:\d+: for development only, keeps nothing\n$`, stderr.String())
}

func TestTimePassesByItself(t *testing.T) {
	t.Parallel()
	ctx, rdb := t.Context(), start(t).Client()
	require.NoError(t, rdb.Set(ctx, "short", "v", time.Second).Err())
	require.NoError(t, rdb.RPush(ctx, "list", "v").Err())
	require.NoError(t, rdb.PExpire(ctx, "list", time.Second).Err())
	require.NoError(t, rdb.Set(ctx, "long", "v", time.Hour).Err())
	require.Equal(t, int64(3), rdb.Exists(ctx, "short", "list", "long").Val())
	require.Eventually(t, func() bool { return rdb.Exists(ctx, "short", "list").Val() == 0 }, 10*time.Second, 5*time.Millisecond)
	require.Equal(t, int64(1), rdb.Exists(ctx, "long").Val())

	// A script sees a key as gone that expired while nobody looked.
	require.NoError(t, rdb.Set(ctx, "claim", "v", time.Millisecond).Err())
	require.Eventually(t, func() bool {
		return rdb.Eval(ctx, "return redis.call('SET', KEYS[1], 'new', 'NX')", []string{"claim"}).Err() == nil
	}, 10*time.Second, time.Millisecond)

	before, err := rdb.Time(ctx).Result()
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), before, 5*time.Second)
}

func TestAddress(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{
		"0.0.0.0:0":      "loopback addresses only",
		":0":             "loopback addresses only",
		"192.0.2.1:6379": "loopback addresses only",
		"6379":           "use host:port",
	} {
		_, err := embedded.Start(embedded.Config{Addr: addr, Logger: quiet()})
		require.ErrorContains(t, err, want, addr)
	}

	s, err := embedded.Start(embedded.Config{Addr: "localhost:0", Logger: quiet()})
	require.NoError(t, err)
	defer s.Close()
	_, err = embedded.Start(embedded.Config{Addr: s.Addr(), Logger: quiet()})
	require.ErrorContains(t, err, "leave Config.Addr empty for a free port")

	rdb := redis.NewClient(s.Options())
	defer func() { require.NoError(t, rdb.Close()) }()
	require.NoError(t, rdb.Ping(t.Context()).Err())
}

func TestCloseEndsBlockedCommandsAndFreesThePort(t *testing.T) {
	t.Parallel()
	s := start(t)
	ended := make(chan error, 20)
	for range cap(ended) / 2 {
		rdb := s.Client()
		go func() { ended <- rdb.BLMove(context.Background(), "list", "list", "LEFT", "LEFT", 0).Err() }()
		go func() {
			ended <- rdb.XRead(context.Background(), &redis.XReadArgs{Streams: []string{"stream", "$"}, Block: 0}).Err()
		}()
	}
	require.Eventually(t, func() bool { return blockedClients(t, s) == cap(ended) }, 10*time.Second, 5*time.Millisecond)

	s.Close()
	for range cap(ended) {
		require.Error(t, <-ended)
	}
	s.Close()
	require.Error(t, s.Client().Ping(t.Context()).Err())
	l, err := net.Listen("tcp", s.Addr())
	require.NoError(t, err)
	require.NoError(t, l.Close())
}

// blockedClients counts connections beyond the one that asks: the others are blocked.
func blockedClients(t *testing.T, s *embedded.Server) int {
	t.Helper()
	rdb := redis.NewClient(s.Options())
	defer func() { require.NoError(t, rdb.Close()) }()
	info, err := rdb.Info(t.Context(), "clients").Result()
	require.NoError(t, err)
	_, count, _ := strings.Cut(info, "connected_clients:")
	n := 0
	for _, c := range count {
		if c < '0' || c > '9' {
			break
		}
		n = n*10 + int(c-'0')
	}
	return n - 1
}

func TestManyWaitersShareOneToken(t *testing.T) {
	t.Parallel()
	s := start(t)
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr(), PoolSize: 60})
	defer func() { require.NoError(t, rdb.Close()) }()
	var waiters sync.WaitGroup
	for range 50 {
		waiters.Go(func() {
			got, err := rdb.BLMove(context.Background(), "token", "token", "LEFT", "LEFT", 30*time.Second).Result()
			if got != "1" || err != nil {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	require.Eventually(t, func() bool { return blockedClients(t, s) >= 50 }, 10*time.Second, 5*time.Millisecond)
	script := "redis.call('RPUSH', KEYS[1], '1') return redis.call('PEXPIRE', KEYS[1], 60000)"
	require.NoError(t, rdb.Eval(t.Context(), script, []string{"token"}).Err())
	waiters.Wait()
	require.Equal(t, int64(1), rdb.LLen(t.Context(), "token").Val())
	require.Greater(t, rdb.PTTL(t.Context(), "token").Val(), 30*time.Second)
}

func TestServersAreApart(t *testing.T) {
	t.Parallel()
	a, b := start(t), start(t)
	require.NoError(t, a.Client().Set(t.Context(), "k", "v", 0).Err())
	require.ErrorIs(t, b.Client().Get(t.Context(), "k").Err(), redis.Nil)
}
