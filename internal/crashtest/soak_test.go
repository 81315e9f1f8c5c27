package crashtest_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/smallage/smallage/internal/crashtest"
	"github.com/smallage/smallage/internal/redistest"
	smallage "github.com/smallage/smallage/runtime"
)

// These variables lengthen the test and repeat a run.
const (
	soakVariable = "SMALLAGE_SOAK" // how many jobs
	seedVariable = "SMALLAGE_SEED"
)

const shortSoak = 1200

func TestNoJobIsLostOrRepeatedWhileWorkersConnectionsAndRedisBreak(t *testing.T) {
	t.Parallel()
	jobs := int(number(t, soakVariable, shortSoak))
	seed := uint64(number(t, seedVariable, time.Now().UnixNano()))
	t.Logf("%s=%d %s=%d", soakVariable, jobs, seedVariable, seed)
	c := newChaos(t, seed, 5)

	// The enqueuers' own connections break as well.
	proxy := redistest.NewProxy(t, c.server.Addr())
	rdb := redis.NewClient(&redis.Options{Addr: proxy.Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	client, err := smallage.NewClient(rdb, smallage.ClientConfig{Namespace: c.ns, MaxWaitConns: 64})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	c.load = crashtest.NewLoad(client, 10*time.Minute)

	rounds := max(1, jobs/shortSoak)
	var sent atomic.Int64
	var due atomic.Int64 // how many may have been sent so far
	const each = 4
	ended := make(chan error, each)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	for n := range each {
		rng := rand.New(rand.NewPCG(seed, uint64(n)))
		enqueue := func() error {
			for i := n; i < jobs; i += each {
				for int64(i) >= due.Load() && ctx.Err() == nil {
					time.Sleep(5 * time.Millisecond)
				}
				if err := c.load.Enqueue(ctx, randomSpec(rng, i)); err != nil {
					return err
				}
				if sent.Add(1)%97 == 0 {
					proxy.CutAfterBytes(rng.IntN(200))
				}
			}
			return nil
		}
		go func() { ended <- enqueue() }()
	}
	blows := 0
	for range rounds {
		c.round(func() { // jobs keep coming between the blows
			blows++
			due.Store(int64(jobs * blows / (rounds * actionsPerRound())))
		})
	}
	for range each {
		require.NoError(t, <-ended)
	}
	found := c.end(3 * time.Minute)
	t.Logf("what happened: %v", c.did)
	require.Greater(t, found.Effects, jobs/2)
	require.Positive(t, found.Dead)
	require.Positive(t, found.Skipped)
}

// randomSpec is the job with this number.
func randomSpec(rng *rand.Rand, i int) crashtest.Spec {
	spec := crashtest.Spec{Task: crashtest.Plain, OwnID: rng.IntN(2) == 0, Asked: rng.IntN(4) == 0}
	switch p := rng.IntN(100); {
	case p < 40:
		spec.Nap = time.Duration(rng.IntN(60)) * time.Millisecond
	case p < 55:
		spec.Task, spec.Asked = crashtest.Value, true
	case p < 70:
		spec.Task = crashtest.FailOnce
	case p < 80:
		spec.Task = crashtest.FailAlways
	case p < 90:
		spec.Nap = time.Duration(20+rng.IntN(300)) * time.Millisecond
	default:
		spec.Delay = time.Duration(rng.IntN(1500)) * time.Millisecond
	}
	if p := rng.IntN(1000); p < 3 {
		spec.Nap = 3 * time.Second // longer than the lease
	}
	if rng.IntN(3) == 0 {
		if spec.Task == crashtest.FailAlways {
			spec.Key = fmt.Sprintf("dead-%d", i)
		} else {
			spec.Key = fmt.Sprintf("key-%d", i/8) // neighbours share it
		}
	}
	return spec
}

func number(t *testing.T, variable string, otherwise int64) int64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(text, 10, 64)
	require.NoError(t, err, variable)
	return n
}
