package redistest_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/smallage/smallage/internal/redistest"
)

type proxied struct {
	*redistest.Proxy
	ns     string
	rdb    *redis.Client // through the proxy: one connection at a time, every command sent once
	direct *redis.Client
}

func newProxied(t *testing.T) proxied {
	t.Helper()
	s := redistest.Shared(t)
	p := redistest.NewProxy(t, s.Addr())
	rdb := redis.NewClient(&redis.Options{
		Addr: p.Addr(), MaxRetries: -1, ContextTimeoutEnabled: true, DialerRetries: 1,
	})
	t.Cleanup(func() { require.NoError(t, rdb.Close()) })
	require.NoError(t, rdb.Ping(t.Context()).Err())
	return proxied{p, redistest.Namespace(t), rdb, s.Client()}
}

// count returns how often the counter was raised on the server, whatever the client was told.
func (p proxied) count(t *testing.T) int {
	t.Helper()
	n, err := p.direct.Get(t.Context(), p.ns).Int()
	if err != nil {
		require.ErrorIs(t, err, redis.Nil)
	}
	return n
}

func (p proxied) awaitConns(t *testing.T, want int) {
	t.Helper()
	require.Eventually(t, func() bool { return p.Conns() == want }, 10*time.Second, time.Millisecond)
}

func TestProxyPassesEverythingThrough(t *testing.T) {
	t.Parallel()
	p := newProxied(t)
	big := strings.Repeat("smallage", 1<<17)
	require.NoError(t, p.rdb.Set(t.Context(), p.ns, big, time.Minute).Err())
	got, err := p.rdb.Get(t.Context(), p.ns).Result()
	require.NoError(t, err)
	require.Equal(t, big, got)
	require.Equal(t, 1, p.Conns())
	require.Equal(t, 1, p.Accepted())
}

func TestCutBreaksOpenConnectionsOnly(t *testing.T) {
	t.Parallel()
	p := newProxied(t)
	blocked := make(chan error, 1)
	go func() { blocked <- p.rdb.BLPop(context.Background(), 0, p.ns+":list").Err() }()
	require.Eventually(t, func() bool {
		list, err := p.direct.ClientList(t.Context()).Result()
		return err == nil && strings.Contains(list, "cmd=blpop")
	}, 10*time.Second, time.Millisecond)

	p.Cut()
	require.Error(t, <-blocked)
	p.awaitConns(t, 0)
	require.NoError(t, p.rdb.Ping(t.Context()).Err())
	require.Equal(t, 2, p.Accepted())
}

func TestRefuseTurnsNewConnectionsAway(t *testing.T) {
	t.Parallel()
	p := newProxied(t)
	p.Refuse(true)
	require.NoError(t, p.rdb.Ping(t.Context()).Err(), "an open connection stays")
	_, err := net.Dial("tcp", p.Addr())
	require.ErrorContains(t, err, "refused")

	p.Cut()
	p.awaitConns(t, 0)
	require.Error(t, p.rdb.Ping(t.Context()).Err())
	p.Refuse(false)
	require.NoError(t, p.rdb.Ping(t.Context()).Err())
}

func TestDroppedRepliesBelongToCommandsThatRan(t *testing.T) {
	t.Parallel()
	p := newProxied(t)
	p.DropReplies(true)
	require.Error(t, p.rdb.Incr(t.Context(), p.ns).Err())
	require.Equal(t, 1, p.count(t))
	require.Error(t, p.rdb.Incr(t.Context(), p.ns).Err(), "the greeting of a new connection is lost as well")
	require.Equal(t, 1, p.count(t))

	p.DropReplies(false)
	require.Equal(t, int64(2), p.rdb.Incr(t.Context(), p.ns).Val())
}

func TestDropRepliesToLosesOnlyThose(t *testing.T) {
	t.Parallel()
	p := newProxied(t)
	p.DropRepliesTo("INCR")
	for n := 1; n <= 3; n++ {
		require.Error(t, p.rdb.Incr(t.Context(), p.ns).Err())
		require.Equal(t, n, p.count(t), "a client that sends again runs the command again")
		require.NoError(t, p.rdb.Ping(t.Context()).Err())
	}
	p.DropRepliesTo("")
	require.Equal(t, int64(4), p.rdb.Incr(t.Context(), p.ns).Val())
}

func TestCutAfterBytesBreaksAReplyOnce(t *testing.T) {
	t.Parallel()
	p := newProxied(t)
	const value = "ten bytes."
	require.NoError(t, p.rdb.Set(t.Context(), p.ns, value, time.Minute).Err())

	// The reply is "$10\r\n", the value and "\r\n": every place in it is cut, and its end.
	for n := range 17 {
		p.CutAfterBytes(n)
		require.Error(t, p.rdb.Get(t.Context(), p.ns).Err(), n)
		require.Equal(t, value, p.rdb.Get(t.Context(), p.ns).Val(), n)
	}
	p.CutAfterBytes(17)
	require.Equal(t, value, p.rdb.Get(t.Context(), p.ns).Val())
	p.awaitConns(t, 0)
	p.CutAfterBytes(5)
	p.CutAfterBytes(-1)
	require.Equal(t, value, p.rdb.Get(t.Context(), p.ns).Val())
}

func TestStallHoldsTrafficUntilItEnds(t *testing.T) {
	t.Parallel()
	p := newProxied(t)
	p.Stall(true)
	reply := make(chan error, 1)
	go func() { reply <- p.rdb.Incr(context.Background(), p.ns).Err() }()
	select {
	case err := <-reply:
		require.Fail(t, "answered although stalled", "%v", err)
	case <-time.After(50 * time.Millisecond):
	}
	require.Equal(t, 0, p.count(t))
	p.Stall(false)
	require.NoError(t, <-reply)
	require.Equal(t, 1, p.count(t))

	p.Stall(true)
	go func() { reply <- p.rdb.Incr(context.Background(), p.ns).Err() }()
	p.Cut()
	require.Error(t, <-reply)
	p.Stall(false)
}

func TestDelayHoldsRepliesBack(t *testing.T) {
	t.Parallel()
	p := newProxied(t)
	p.Delay(50 * time.Millisecond)
	begin := time.Now()
	require.NoError(t, p.rdb.Ping(t.Context()).Err())
	require.GreaterOrEqual(t, time.Since(begin), 50*time.Millisecond)
	p.Delay(0)
	require.NoError(t, p.rdb.Ping(t.Context()).Err())
}

func TestProxyBeforeADeadServerBreaksConnections(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr())
	rdb := redis.NewClient(&redis.Options{Addr: p.Addr(), MaxRetries: -1, DialerRetries: 1})
	t.Cleanup(func() { require.NoError(t, rdb.Close()) })
	require.NoError(t, rdb.Ping(t.Context()).Err())
	s.Kill()
	require.Error(t, rdb.Ping(t.Context()).Err())
	s.StartAgain()
	require.NoError(t, rdb.Ping(t.Context()).Err())
}
