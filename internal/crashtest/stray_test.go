package crashtest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/smallage/smallage/internal/crashtest"
	"github.com/smallage/smallage/internal/redistest"
	smallage "github.com/smallage/smallage/runtime"
)

func TestATakeoverWhoseReplyWasLostStillCarriesOutTheVerdict(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := newScene(t, server)
	ctx := context.Background()
	s.enqueue(crashtest.Spec{Task: crashtest.FailAlways, Key: "dead", Asked: true})
	victim := s.worker("SMALLAGE_POINT=after-verdict")
	require.True(t, crashtest.Killed(victim.AwaitEnd(30*time.Second)))
	require.EqualValues(t, 1, s.rdb.HLen(ctx, s.key("verdict")).Val())

	proxy := redistest.NewProxy(t, server.Addr())
	proxy.DropRepliesTo(s.key("pass")) // every takeover names this key
	s.setup.Addr = proxy.Addr()
	heir := s.worker()
	require.Eventually(t, func() bool {
		pending, err := s.rdb.XPendingExt(ctx, &redis.XPendingExtArgs{Stream: s.key("stream"), Group: "workers", Start: "-", End: "+", Count: 10}).Result()
		return err == nil && len(pending) == 1 && strings.HasPrefix(pending[0].Consumer, fmt.Sprintf("p%d-", heir.PID))
	}, 20*time.Second, 10*time.Millisecond, "it takes the entry over without knowing")
	proxy.DropRepliesTo("")
	s.settle(30 * time.Second)
	require.Len(t, s.records(crashtest.Started), crashtest.FailAlways.Attempts, "the handler was not called again")
	heir.Stop()
}

func TestReadsWhoseRepliesAreLostDelayTheirJobsAndCostNoDelivery(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := newScene(t, server)
	s.setup.Lease = 4 * time.Second
	proxy := redistest.NewProxy(t, server.Addr())
	s.setup.Addr = proxy.Addr()
	worker := s.worker()
	s.enqueue(crashtest.Spec{Task: crashtest.Plain, Asked: true})
	s.settle(20 * time.Second)
	proxy.DropRepliesTo("xreadgroup")
	time.Sleep(1200 * time.Millisecond) // until the read under way has ended
	for range 5 {
		s.enqueue(crashtest.Spec{Task: crashtest.Plain, Key: fmt.Sprint(time.Now()), Asked: true})
	}
	begin := time.Now()
	s.settle(20 * time.Second) // although every read still fails
	require.Greater(t, time.Since(begin), time.Second, "the reads succeeded: the test proves nothing")
	require.Less(t, time.Since(begin), 3*s.setup.Lease)
	proxy.DropRepliesTo("")
	for _, r := range s.records(crashtest.Started) {
		require.Equal(t, 1, r.Delivery, "nothing was lost with a worker")
	}
	worker.Stop()
}

func TestAClaimThatComesLateForAJobThatHasEndedIsGivenUp(t *testing.T) {
	t.Parallel()
	s := newScene(t, redistest.Start(t))
	ctx := context.Background()
	require.NoError(t, s.rdb.ConfigSet(ctx, "notify-keyspace-events", "K$g").Err())
	key := s.ns + ":{d:dead}"
	s.enqueue(crashtest.Spec{Task: crashtest.FailAlways, Key: "dead", Asked: true})
	late := s.worker("SMALLAGE_POINT=claiming:1:pause")
	require.Eventually(t, late.IsStopped, 30*time.Second, 10*time.Millisecond)
	other := s.worker()
	s.settle(30 * time.Second)
	require.EqualValues(t, 0, s.rdb.Exists(ctx, key).Val())
	claims := s.rdb.Subscribe(ctx, "__keyspace@0__:"+key)
	t.Cleanup(func() { _ = claims.Close() })
	_, err := claims.Receive(ctx)
	require.NoError(t, err)
	late.Thaw()
	require.Eventually(t, func() bool { return len(s.records(string(smallage.EventLeaseLost))) == 1 }, 20*time.Second, 10*time.Millisecond)
	within, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for event := ""; event != "del"; { // it claims the key, and lets go of it
		m, err := claims.ReceiveMessage(within)
		require.NoError(t, err, "the key is held for a job that is dead")
		event = m.Payload
	}
	require.EqualValues(t, 0, s.rdb.Exists(ctx, key).Val())
	s.enqueue(crashtest.Spec{Task: crashtest.Value, Key: "dead", Asked: true})
	jobs := s.load.Jobs()
	require.True(t, jobs[len(jobs)-1].Outcome.OK(), "another job may have the key")
	for _, r := range s.records(crashtest.Started) {
		require.True(t, r.PID == other.PID || r.Job == jobs[len(jobs)-1].ID.String(), "the handler is not called for a job that has ended")
	}
	late.Stop()
	other.Stop()
}
