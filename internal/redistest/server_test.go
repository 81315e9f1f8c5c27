package redistest_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/smallage/smallage/internal/redistest"
)

func TestServerKeepsNothingUnlessAsked(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	ctx, rdb := t.Context(), s.Client()
	require.NoError(t, rdb.Set(ctx, "k", "v", 0).Err())

	s.Restart()
	require.ErrorIs(t, rdb.Get(ctx, "k").Err(), redis.Nil)
}

func TestServerWithAOFKeepsWhatItConfirmed(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]func(*redistest.Server){
		"stopped": (*redistest.Server).Restart,
		"killed":  (*redistest.Server).Crash,
		"killed while frozen": func(s *redistest.Server) {
			s.Pause()
			s.Crash()
		},
		"stopped while frozen": func(s *redistest.Server) {
			s.Pause()
			s.Restart()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t, redistest.AOF())
			ctx, rdb := t.Context(), s.Client()
			addr, pid := s.Addr(), s.PID()
			for range 100 {
				require.NoError(t, rdb.Incr(ctx, "n").Err())
			}

			again(s)
			require.Equal(t, addr, s.Addr())
			require.NotEqual(t, pid, s.PID())
			n, err := rdb.Get(ctx, "n").Int()
			require.NoError(t, err)
			require.Equal(t, 100, n)
		})
	}
}

func TestServerThatWasKilledRefusesUntilStartedAgain(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.ClientWith(redis.Options{MaxRetries: -1})
	require.NoError(t, rdb.Ping(t.Context()).Err())

	s.Kill()
	require.Error(t, rdb.Ping(t.Context()).Err())
	s.StartAgain()
	require.NoError(t, s.Client().Ping(t.Context()).Err())
}

func TestPausedServerAnswersOnceResumed(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.ClientWith(redis.Options{MaxRetries: -1, ContextTimeoutEnabled: true})
	require.NoError(t, rdb.Ping(t.Context()).Err())

	s.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorContains(t, rdb.Ping(ctx).Err(), "timeout")
	s.Resume()
	require.NoError(t, rdb.Ping(t.Context()).Err())
}

func TestServersDoNotShareAnything(t *testing.T) {
	t.Parallel()
	a, b := redistest.Start(t), redistest.Start(t)
	require.NotEqual(t, a.Addr(), b.Addr())
	require.NoError(t, a.Client().Set(t.Context(), "k", "a", 0).Err())
	require.ErrorIs(t, b.Client().Get(t.Context(), "k").Err(), redis.Nil)
}

func TestArgsReachTheServer(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Args("--maxmemory", "64mb"))
	got, err := s.Client().ConfigGet(t.Context(), "maxmemory").Result()
	require.NoError(t, err)
	require.Equal(t, map[string]string{"maxmemory": "67108864"}, got)
	require.Contains(t, s.Log(), "Ready to accept connections")
}

func TestSharedIsOneServer(t *testing.T) {
	t.Parallel()
	a, b := redistest.Shared(t), redistest.Shared(t)
	require.Equal(t, a.PID(), b.PID())
	require.NoError(t, a.Client().Ping(t.Context()).Err())
}

func TestNamespacesDiffer(t *testing.T) {
	t.Parallel()
	a, b := redistest.Namespace(t), redistest.Namespace(t)
	require.NotEqual(t, a, b)
	t.Run("named {oddly}: päper/[*] and at a length that nobody wants to read in a listing of keys", func(t *testing.T) {
		t.Parallel()
		require.Regexp(t, `^[A-Za-z0-9._-]{20,80}$`, redistest.Namespace(t))
	})
}

func TestClusterRefusesWhatSpansSlots(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	ctx, rdb := t.Context(), c.Client()
	require.NoError(t, rdb.MSet(ctx, "{a}1", "x", "{a}2", "y").Err())
	require.ErrorContains(t, rdb.Eval(ctx, "return 1", []string{"{a}", "{b}"}).Err(), "CROSSSLOT")

	// Every slot is served, and every master has a share of the keys.
	for i := range 300 {
		require.NoError(t, rdb.Set(ctx, redistest.Namespace(t)+":{"+string(rune('a'+i))+"}", i, time.Minute).Err())
	}
	for _, s := range c.Servers {
		size, err := s.Client().DBSize(ctx).Result()
		require.NoError(t, err)
		require.Greater(t, size, int64(20))
	}
	require.Len(t, redistest.Keys(t, rdb, "*.*"), 300)
	redistest.RequireAllKeysHaveTTL(t, rdb, "*.*")
}
