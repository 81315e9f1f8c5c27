package crashtest_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/smallage/smallage/internal/crashtest"
	"github.com/smallage/smallage/internal/redistest"
	smallage "github.com/smallage/smallage/runtime"
)

// deaths are the points of a worker, and how often it passes each before it dies there.
var deaths = map[string][]int{
	"read": {1, 2}, "ticked": {1, 2, 3}, "picked": {1, 4}, "claiming": {1, 3}, "claimed": {1, 3}, "starting": {1, 3}, "returned": {1, 3},
	"expired": {1}, "renewing": {1, 2}, "renewed": {1, 2},
	"before-done": {1, 2}, "after-done": {1, 2}, "before-outcome": {1, 3}, "after-outcome": {1, 3},
	"before-ack": {1, 3}, "after-ack": {1, 3}, "before-extend": {1, 2}, "after-extend": {1, 2},
	"before-retry": {1, 2}, "after-retry": {1, 2}, "before-verdict": {1, 2}, "after-verdict": {1, 2},
	"before-unclaim": {1}, "after-unclaim": {1}, "before-finish": {1, 2}, "after-finish": {1, 2},
}

// shutdownDeaths are the points of a worker that was asked to end.
var shutdownDeaths = []string{"stopping", "handed-back", "leaving", "left"}

// enqueuerDeaths are the points of a process that enqueues.
var enqueuerDeaths = []string{"enqueue-ready", "enqueued"}

// replayDeaths are the points of a process that replays a dead job.
var replayDeaths = []string{"replay-forgotten", "replayed"}

func TestNoPointBetweenTwoCallsToRedisIsLeftOut(t *testing.T) {
	t.Parallel()
	tested := map[string]bool{"before-over": true, "after-over": true} // steps that send nothing
	for _, names := range [][]string{slices.Collect(maps.Keys(deaths)), shutdownDeaths, enqueuerDeaths, replayDeaths} {
		for _, name := range names {
			tested[name] = true
		}
	}
	for _, death := range waiterDeaths {
		tested[death.point] = true
	}
	files, err := filepath.Glob("../../runtime/*.go")
	require.NoError(t, err)
	var named int
	for _, file := range files {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, match := range regexp.MustCompile(`\bpoint\("([a-z-]+)"\)`).FindAllStringSubmatch(string(source), -1) {
			named++
			require.True(t, tested[match[1]], "no test kills a worker at the point %s of %s", match[1], file)
		}
		for _, match := range regexp.MustCompile(`\bstep[A-Z]\w+:\s+"([a-z]+)"`).FindAllStringSubmatch(string(source), -1) {
			named++
			require.True(t, tested["before-"+match[1]] && tested["after-"+match[1]], "no test kills a worker at the step %s", match[1])
		}
	}
	require.Greater(t, named, 20, "the points were not found in the sources")
}

func mixedJobs() []crashtest.Spec {
	jobs := []crashtest.Spec{
		{Task: crashtest.Plain},
		{Task: crashtest.Plain, Late: true, Asked: true},
		{Task: crashtest.Value, Key: "twice", Asked: true},
		{Task: crashtest.Value, Key: "twice", Asked: true},
		{Task: crashtest.FailOnce, Key: "retried", Asked: true},
		{Task: crashtest.FailOnce},
		{Task: crashtest.FailAlways, Key: "dead", Asked: true},
		{Task: crashtest.FailAlways},
		{Task: crashtest.Plain, Nap: 700 * time.Millisecond, Key: "slow"},
		{Task: crashtest.Plain, Delay: 200 * time.Millisecond},
		{Task: crashtest.Value, Asked: true},
		{Task: crashtest.Value, Delay: 100 * time.Millisecond, Key: "later", Asked: true},
	}
	for range 6 {
		jobs = append(jobs, crashtest.Spec{Task: crashtest.Plain, Nap: 5 * time.Millisecond})
	}
	return jobs
}

func TestAWorkerThatDiesBetweenAnyTwoStepsLosesNothingAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	for _, point := range slices.Sorted(maps.Keys(deaths)) {
		for _, n := range deaths[point] {
			t.Run(fmt.Sprintf("%s %d", point, n), func(t *testing.T) {
				t.Parallel()
				s := newScene(t, redistest.Shared(t))
				s.enqueue(mixedJobs()...)
				victim := s.worker(fmt.Sprintf("SMALLAGE_POINT=%s:%d", point, n))
				state := victim.AwaitEnd(30 * time.Second)
				require.True(t, crashtest.Killed(state), "the worker never got to the point %s: %v", point, state)
				require.NoError(t, s.witness.Killed(victim.PID))
				next := s.worker()
				s.settle(40 * time.Second)
				next.Stop()
			})
		}
	}
}

func TestAWorkerThatIsFrozenBetweenAnyTwoStepsAndThawsLaterChangesNothing(t *testing.T) {
	t.Parallel()
	for _, point := range slices.Sorted(maps.Keys(deaths)) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, redistest.Shared(t))
			s.enqueue(mixedJobs()...)
			victim := s.worker("SMALLAGE_POINT=" + point + ":1:pause")
			require.Eventually(t, victim.IsStopped, 30*time.Second, 10*time.Millisecond, "the worker never got to the point %s", point)
			time.Sleep(20 * time.Millisecond) // what it sent last reaches the server
			require.NoError(t, s.witness.Frozen(victim.PID))
			other := s.worker()
			require.Eventually(t, s.atRest, 40*time.Second, 20*time.Millisecond, "the other worker ends all jobs")
			victim.Thaw()
			time.Sleep(s.setup.Lease) // it goes on where it stood
			s.settle(40 * time.Second)
			victim.Stop()
			other.Stop()
			found, err := crashtest.Verify(s.rdb, s.ns, s.load.Jobs(), s.witness)
			require.NoError(t, err)
			require.Empty(t, found.Problems, "after the shutdown")
		})
	}
}

func TestAWorkerThatDiesWhileItShutsDownLosesNothing(t *testing.T) {
	t.Parallel()
	for _, point := range shutdownDeaths {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, redistest.Shared(t))
			s.enqueue(mixedJobs()...)
			for range 10 {
				s.enqueue(crashtest.Spec{Task: crashtest.Plain, Nap: 300 * time.Millisecond, Asked: true})
			}
			victim := s.worker("SMALLAGE_POINT=" + point)
			require.Eventually(t, func() bool { return len(s.records(crashtest.Effect)) > 0 }, 20*time.Second, 5*time.Millisecond)
			victim.Terminate()
			state := victim.AwaitEnd(30 * time.Second)
			require.True(t, crashtest.Killed(state), "the worker never got to the point %s: %v", point, state)
			require.NoError(t, s.witness.Killed(victim.PID))
			next := s.worker()
			s.settle(40 * time.Second)
			next.Stop()
		})
	}
}

func TestAnEnqueuerThatDiesAndSendsItsIDAgainEnqueuesOnce(t *testing.T) {
	t.Parallel()
	for _, point := range enqueuerDeaths {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, redistest.Shared(t))
			id, err := smallage.NewJobID()
			require.NoError(t, err)
			s.setup.EnqueueID = id.String()
			victim := s.worker("SMALLAGE_POINT=" + point)
			require.True(t, crashtest.Killed(victim.AwaitEnd(30*time.Second)))
			again := s.worker()
			require.True(t, again.AwaitEnd(30*time.Second).Success())
			require.EqualValues(t, 1, s.rdb.XLen(context.Background(), s.key("stream")).Val())
		})
	}
}

func TestAReplayThatDiesInTheMiddleAndIsRepeatedRunsTheJobOnce(t *testing.T) {
	t.Parallel()
	for _, point := range replayDeaths {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, redistest.Shared(t))
			ctx := context.Background()
			s.enqueue(crashtest.Spec{Task: crashtest.FailAlways, Key: "dead", Asked: true})
			worker := s.worker()
			s.settle(30 * time.Second)
			worker.Stop()
			runs := len(s.records(crashtest.Started))
			id := s.load.Jobs()[0].ID
			s.setup.ReplayID = id.String()
			victim := s.worker("SMALLAGE_POINT=" + point)
			require.True(t, crashtest.Killed(victim.AwaitEnd(30*time.Second)), victim.Log())
			_, err := s.client.Result(ctx, id)
			require.ErrorIs(t, err, smallage.ErrNoResult, "whoever waits now waits for the new outcome")
			places := func() []int64 {
				return []int64{s.rdb.XLen(ctx, s.key("stream")).Val(), s.rdb.ZCard(ctx, s.key("dead")).Val()}
			}
			switch again := s.worker(); point {
			case "replay-forgotten":
				require.True(t, again.AwaitEnd(30*time.Second).Success(), again.Log())
			default:
				require.False(t, again.AwaitEnd(30*time.Second).Success(), "it is no longer dead")
			}
			require.Equal(t, []int64{1, 0}, places(), "it is in the stream once, and nowhere else")
			s.setup.ReplayID = ""
			worker = s.worker()
			s.settle(30 * time.Second)
			require.Len(t, s.records(crashtest.Started), 2*runs, "it had fresh attempts, once")
			res, err := s.client.Wait(ctx, id, 10*time.Second)
			require.NoError(t, err)
			require.Equal(t, smallage.StatusFailed, res.Status)
			worker.Stop()
		})
	}
}
