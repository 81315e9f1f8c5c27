package smallage_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/smallage/smallage/internal/redistest"
	smallage "github.com/smallage/smallage/runtime"
)

// ownClient is a client of the shared server with a pool of its own.
func ownClient(t *testing.T, poolSize int) (*redis.Client, *smallage.Client, string) {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: redistest.Shared(t).Addr(), PoolSize: poolSize, PoolTimeout: 5 * time.Second})
	t.Cleanup(func() { _ = rdb.Close() })
	ns := redistest.Namespace(t)
	client, err := smallage.NewClient(rdb, smallage.ClientConfig{Namespace: ns})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return rdb, client, ns
}

// taken is how often a connection was taken from the pool.
func taken(rdb *redis.Client) int {
	s := rdb.PoolStats()
	return int(s.Hits + s.Misses)
}

// inUse is how many connections are out of the pool.
func inUse(rdb *redis.Client) int {
	s := rdb.PoolStats()
	return int(s.TotalConns) - int(s.IdleConns)
}

// requireNothingHeld enqueues job after job beside so many connections in use by others.
func requireNothingHeld(t *testing.T, rdb *redis.Client, client *smallage.Client, others int) {
	t.Helper()
	for range 20 {
		before := taken(rdb)
		enqueueSome(t, client, 20)
		require.Equal(t, before+20, taken(rdb))
		require.Equal(t, others, inUse(rdb), "nothing is held")
	}
}

func enqueueSome(t *testing.T, client *smallage.Client, n int) {
	t.Helper()
	for range n {
		_, err := echo.Enqueue(t.Context(), client, textArgs{"x"}, nil)
		require.NoError(t, err)
	}
}

func TestJobsThatFollowEachOtherShareAConnectionAndThePoolHasItBack(t *testing.T) {
	t.Parallel()
	rdb, client, _ := ownClient(t, 10)
	eventually(t, func() bool {
		before := taken(rdb)
		enqueueSome(t, client, 20)
		return taken(rdb) < before+20
	}, "some jobs do not take a connection from the pool")
	eventually(t, func() bool { return inUse(rdb) == 0 }, "the pool has all its connections")
}

func TestASmallPoolKeepsItsConnections(t *testing.T) {
	t.Parallel()
	rdb, client, _ := ownClient(t, 1)
	enqueueSome(t, client, 1)
	requireNothingHeld(t, rdb, client, 0)
}

// occupy has so many connections of a client wait for a list that stays empty.
func occupy(t *testing.T, rdb *redis.Client, n int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	before := inUse(rdb)
	for range n {
		go func() { rdb.BLPop(ctx, 10*time.Second, redistest.Namespace(t)) }()
	}
	eventually(t, func() bool { return inUse(rdb) == before+n }, "they wait")
}

func TestWhereMostConnectionsAreInUseNoneIsHeld(t *testing.T) {
	t.Parallel()
	rdb, client, _ := ownClient(t, 10)
	enqueueSome(t, client, 1)
	occupy(t, rdb, 6)
	requireNothingHeld(t, rdb, client, 6)
}

func TestALargeBatchNeedsNoConnectionForSingleCommands(t *testing.T) {
	t.Parallel()
	rdb, client, _ := ownClient(t, 10)
	enqueueSome(t, client, 1)
	eventually(t, func() bool { return inUse(rdb) == 0 }, "nothing is held")
	occupy(t, rdb, 10)
	var batch smallage.Batch
	for range 300 {
		_, err := echo.Enqueue(t.Context(), &batch, textArgs{"x"}, nil)
		require.NoError(t, err)
	}
	require.NoError(t, client.EnqueueBatch(t.Context(), &batch))
}

func TestAClosedRedisClientIsNoReasonForDoubt(t *testing.T) {
	t.Parallel()
	for range 20 {
		rdb, client, _ := ownClient(t, 10)
		enqueueSome(t, client, 5)
		require.NoError(t, rdb.Close())
		_, err := echo.Enqueue(t.Context(), client, textArgs{"x"}, nil)
		require.ErrorIs(t, err, redis.ErrClosed)
		require.NotErrorIs(t, err, smallage.ErrUnconfirmed)
		require.ErrorContains(t, err, "nothing was sent")
	}
}

func TestCloseGivesBackWhatTheClientHolds(t *testing.T) {
	t.Parallel()
	for range 20 {
		rdb, client, _ := ownClient(t, 10)
		enqueueSome(t, client, 5)
		require.NoError(t, client.Close())
		require.Zero(t, inUse(rdb))
	}
}

func TestAConnectionThatDiesBetweenJobsCostsNoJobAndTheNextGoesOn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	client, proxy := b.throughProxy()
	confirmed, unconfirmed := map[string]bool{}, map[string]bool{}
	for range 300 {
		failed := 0
		for range 5 {
			id, err := echo.Enqueue(t.Context(), client, textArgs{"x"}, nil)
			if err == nil {
				confirmed[id.String()] = true
				continue
			}
			require.ErrorIs(t, err, smallage.ErrUnconfirmed)
			unconfirmed[id.String()] = true
			failed++
		}
		require.LessOrEqual(t, failed, 1, "jobs that fail until the connection is another")
		proxy.Cut()
	}
	stored := b.stored("echo")
	for id := range confirmed {
		require.Equal(t, 1, stored[id], "a confirmed job is there once")
		delete(stored, id)
	}
	for id, n := range stored {
		require.True(t, unconfirmed[id], "every other is one of which the caller was told")
		require.Equal(t, 1, n)
	}
}

// countingHook counts commands, and panics on one when told to.
type countingHook struct {
	redis.Hook
	seen  atomic.Int64
	panic atomic.Bool
}

func (h *countingHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *countingHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h *countingHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "xadd" {
			h.seen.Add(1)
			if h.panic.Load() {
				panic("a hook that fails")
			}
		}
		return next(ctx, cmd)
	}
}

func TestHooksSeeEveryJobAndOneThatPanicsTakesNoConnectionAlong(t *testing.T) {
	t.Parallel()
	rdb, client, _ := ownClient(t, 10)
	hook := &countingHook{}
	rdb.AddHook(hook)
	enqueueSome(t, client, 200)
	require.EqualValues(t, 200, hook.seen.Load())
	for range 50 {
		enqueueSome(t, client, 2)
		hook.panic.Store(true)
		require.Panics(t, func() { _, _ = echo.Enqueue(t.Context(), client, textArgs{"x"}, nil) })
		hook.panic.Store(false)
	}
	enqueueSome(t, client, 2)
	eventually(t, func() bool { return inUse(rdb) == 0 }, "the pool has all its connections")
}
