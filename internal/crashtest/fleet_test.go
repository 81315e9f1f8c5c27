package crashtest_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/smallage/smallage/internal/crashtest"
	"github.com/smallage/smallage/internal/redistest"
	smallage "github.com/smallage/smallage/runtime"
)

func TestAJobThatKillsItsWorkersDiesAloneAmongFortyNineInnocents(t *testing.T) {
	t.Parallel()
	for _, most := range []int{2, 5} {
		t.Run(fmt.Sprintf("%d deliveries", most), func(t *testing.T) {
			t.Parallel()
			s := newScene(t, redistest.Shared(t))
			s.setup.MaxDeliveries, s.setup.Concurrency = most, 8
			for i := range 50 {
				if i == 5 {
					s.enqueue(crashtest.Spec{Task: crashtest.Poison, Key: "poison", Asked: true, Nap: 30 * time.Millisecond})
					continue
				}
				s.enqueue(crashtest.Spec{Task: crashtest.Plain, Asked: i%2 == 0, Nap: 100 * time.Millisecond})
			}
			workers := []*crashtest.Worker{s.worker(), s.worker()}
			deaths := 0
			require.Eventually(t, func() bool {
				for i, w := range workers {
					if !w.Alive() {
						deaths++
						time.Sleep(20 * time.Millisecond) // what it sent last reaches the server
						require.NoError(t, s.witness.Killed(w.PID))
						workers[i] = s.worker()
					}
				}
				return s.atRest()
			}, 60*time.Second, 10*time.Millisecond)
			s.settle(30 * time.Second)
			require.Equal(t, most, deaths, "it may take as many workers along as MaxDeliveries says")
			require.EqualValues(t, 0, s.rdb.Exists(context.Background(), s.ns+":{d:poison}").Val(), "its claim is free")
			for _, w := range workers {
				w.Stop()
			}
		})
	}
}

func TestTenRollingDeploysCostNoJobAnAttemptOrADelivery(t *testing.T) {
	t.Parallel()
	s := newScene(t, redistest.Shared(t))
	s.setup.DrainTimeout = 200 * time.Millisecond
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	enqueued := make(chan error, 1)
	go func() {
		for i := 0; ; i++ {
			spec := crashtest.Spec{Task: crashtest.Value, Asked: i%4 == 0, Nap: time.Duration(i%80) * time.Millisecond}
			if i%25 == 0 {
				spec.Nap = time.Second // longer than the drain, so it is handed back while it runs
			}
			if i%3 == 0 {
				spec.Key = fmt.Sprintf("key-%d", i)
			}
			if err := s.load.Enqueue(ctx, spec); err != nil {
				enqueued <- err
				return
			}
			time.Sleep(12 * time.Millisecond)
		}
	}()
	workers := []*crashtest.Worker{s.worker(), s.worker()}
	for range 10 {
		time.Sleep(300 * time.Millisecond) // the old version works for a while
		next := []*crashtest.Worker{s.worker(), s.worker()}
		for _, w := range workers {
			w.Terminate()
		}
		for _, w := range workers {
			require.True(t, w.AwaitEnd(20*time.Second).Success())
		}
		workers = next
	}
	cancel()
	require.ErrorIs(t, <-enqueued, context.Canceled)
	found := s.settle(60 * time.Second)
	require.Zero(t, found.Repeated)
	require.NotEmpty(t, s.records(string(smallage.EventReleased)), "no deploy handed anything back: the test proves nothing")
	for _, r := range s.records(crashtest.Started) {
		require.Equal(t, 1, r.Attempt, "job %s lost an attempt to a deploy", r.Job)
		require.Equal(t, 1, r.Delivery, "job %s lost a delivery to a deploy", r.Job)
	}
	require.Empty(t, s.records(string(smallage.EventLeaseLost)))
	for _, w := range workers {
		w.Stop()
	}
}

func TestAFrozenWorkerThatThawsAndEndsItsJobTakesNothingFromTheOneThatRunsIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		task *smallage.Task[crashtest.Args]
		step string // where it is frozen; empty: in its handler
	}{
		{"fails its last attempt", crashtest.StubbornLast, ""},
		{"fails with attempts left", crashtest.StubbornRetry, ""},
		{"succeeds", crashtest.StubbornOK, ""},
		{"has failed its last attempt", crashtest.StubbornLast, "before-verdict"},
		{"has failed with attempts left", crashtest.StubbornRetry, "before-retry"},
		{"has succeeded", crashtest.StubbornOK, "before-ack"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, redistest.Shared(t))
			ctx := context.Background()
			s.enqueue(crashtest.Spec{Task: c.task, Nap: 1500 * time.Millisecond, Key: keyOf(c.step), Asked: true})
			recorded := func(what string, n int) {
				t.Helper()
				require.Eventually(t, func() bool { return len(s.records(what)) == n }, 20*time.Second, 5*time.Millisecond, "%d %s", n, what)
			}
			var frozen *crashtest.Worker
			if c.step == "" {
				frozen = s.worker()
				recorded(crashtest.Started, 1)
				frozen.Freeze()
			} else {
				frozen = s.worker("SMALLAGE_POINT=" + c.step + ":1:pause")
				require.Eventually(t, frozen.IsStopped, 20*time.Second, 5*time.Millisecond)
			}
			require.NoError(t, s.witness.Frozen(frozen.PID))
			other := s.worker()
			recorded(crashtest.Started, 2)
			frozen.Thaw()
			ends, effects, state := crashtest.Failed, 0, "claimed:"
			if c.task == crashtest.StubbornOK {
				ends, effects, state = crashtest.Effect, 1, "done:" // which is true
			}
			recorded(ends, 1)
			recorded(string(smallage.EventLeaseLost), 1)
			if key := keyOf(c.step); key != "" {
				require.Eventually(t, func() bool { return s.rdb.Get(ctx, s.ns+":{d:"+key+"}").Val() == state+s.jobID() }, 10*time.Second, 5*time.Millisecond)
			}
			require.Len(t, s.records(crashtest.Effect), effects, "the other one still runs it")
			require.EqualValues(t, 0, s.rdb.Exists(ctx, s.key("dead"), s.key("delayed"), s.key("verdict")).Val(), "the late ending moves nothing")
			pending, err := s.rdb.XPendingExt(ctx, &redis.XPendingExtArgs{Stream: s.key("stream"), Group: "workers", Start: "-", End: "+", Count: 10}).Result()
			require.NoError(t, err)
			require.Len(t, pending, 1)
			require.True(t, strings.HasPrefix(pending[0].Consumer, fmt.Sprintf("p%d-", other.PID)), "the other worker holds it")
			require.EqualValues(t, 2, pending[0].RetryCount)
			s.settle(20 * time.Second)
			require.Len(t, s.records(crashtest.Effect), effects+1)
			require.Len(t, s.records(string(smallage.EventLeaseLost)), 1, "it is told once")
			require.Equal(t, 1, strings.Count(frozen.Log(), "lost the lease"), "and logged once: %s", frozen.Log())
			frozen.Stop()
			other.Stop()
		})
	}
}

// keyOf leaves out the key where the ending would mark it done before it is frozen: the other worker would not run it.
func keyOf(step string) string {
	if step == "before-ack" {
		return ""
	}
	return "stubborn"
}

// jobID is the only job's.
func (s *scene) jobID() string {
	s.t.Helper()
	started := s.records(crashtest.Started)
	require.NotEmpty(s.t, started)
	return started[0].Job
}

func TestRestartsOfWorkersLeaveNoGrowth(t *testing.T) {
	t.Parallel()
	restarts, jobs := 20, 3000
	if os.Getenv(soakVariable) != "" {
		restarts, jobs = 200, 50_000
	}
	s := newScene(t, redistest.Shared(t))
	s.setup.Concurrency = 20
	ctx := context.Background()
	workers := []*crashtest.Worker{s.worker(), s.worker(), s.worker()}
	var leaving []*crashtest.Worker
	for n := range restarts {
		for range jobs / restarts {
			s.enqueue(crashtest.Spec{Task: crashtest.Plain, Nap: 2 * time.Millisecond})
		}
		i := n % len(workers)
		if n%2 == 0 {
			workers[i].Kill()
			time.Sleep(20 * time.Millisecond) // what it sent last reaches the server
			require.NoError(t, s.witness.Killed(workers[i].PID))
		} else {
			workers[i].Terminate()
			leaving = append(leaving, workers[i])
		}
		workers[i] = s.worker()
	}
	for _, w := range leaving {
		require.True(t, w.AwaitEnd(40*time.Second).Success())
	}
	found := s.settle(2 * time.Minute)
	require.GreaterOrEqual(t, found.Effects, jobs/restarts*restarts, "what nobody had read or acknowledged was never trimmed")
	require.Eventually(t, func() bool {
		consumers, err := s.rdb.XInfoConsumers(ctx, s.key("stream"), "workers").Result()
		return err == nil && len(consumers) <= len(workers)+1 && s.rdb.HLen(ctx, s.key("workers")).Val() == int64(len(workers))
	}, 60*time.Second, 50*time.Millisecond, "the consumers of the %d workers that are gone are removed", restarts)
	for _, w := range workers {
		w.Stop()
	}
	for _, key := range redistest.Keys(t, s.rdb, s.ns+":*") {
		require.Contains(t, []string{s.key("stream"), s.key("pass"), s.key("pass:sweep"), s.ns + ":{queues}"}, key, "this key is left")
	}
}
