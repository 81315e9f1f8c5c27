package crashtest_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/smallage/smallage/internal/crashtest"
	"github.com/smallage/smallage/internal/redistest"
)

// fleet keeps a number of worker processes running: one that ends is noted by the witness and replaced.
type fleet struct {
	*scene
	plan    func() []string // environment of a new process
	workers []*crashtest.Worker
	died    int
}

func (f *fleet) start(n int) {
	for range n {
		f.workers = append(f.workers, f.worker(f.plan()...))
	}
}

// kill ends a process, unless it is gone already.
func (f *fleet) kill(pid int) {
	for _, w := range f.workers {
		if w.PID == pid && w.Alive() {
			w.Kill()
		}
	}
}

// mend looks after processes that have ended.
func (f *fleet) mend() {
	for i, w := range f.workers {
		if w.Alive() {
			continue
		}
		require.NoError(f.t, f.witness.Killed(w.PID))
		f.died++
		f.workers[i] = f.worker(f.plan()...)
	}
}

// TestEachKeysSideEffectHappensOnceWhileWorkersAreKilled has 64 workers, in 8 processes, on 200 copies of jobs for each
// of 20 keys. Of every key's copies one runs; the process that runs it is killed in the middle for some keys, others are
// killed at random, and some kill themselves exactly between the handler's return and the mark done. Only the last may
// repeat a side effect, and the witness tells which did.
func TestEachKeysSideEffectHappensOnceWhileWorkersAreKilled(t *testing.T) {
	t.Parallel()
	const keys, copies, processes, atOnce = 20, 200, 8, 5
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	s := newScene(t, redistest.Start(t))
	s.setup.Workers, s.setup.Concurrency = 64/processes, 1
	planned := 0
	f := &fleet{scene: s, plan: func() []string {
		if planned++; planned%3 == 0 {
			return []string{"SMALLAGE_POINT=returned:1"} // between return and done, of the first handler that it calls
		}
		return nil
	}}
	f.start(processes)

	for first := 0; first < keys; first += atOnce {
		for range copies {
			for k := range atOnce {
				s.enqueue(crashtest.Spec{
					Task: crashtest.Plain, Key: "key" + strconv.Itoa(first+k), Nap: 300 * time.Millisecond, Asked: random.IntN(20) == 0,
				})
			}
		}
		struck := map[string]bool{}
		require.Eventually(t, func() bool {
			f.mend()
			for _, r := range s.records(crashtest.Started) {
				var k int
				if _, err := fmt.Sscanf(r.Key, "key%d", &k); err == nil && k%2 == 0 && !struck[r.Key] && k >= first {
					struck[r.Key] = true
					f.kill(r.PID) // its handler naps
				}
			}
			if random.IntN(10) == 0 {
				f.kill(f.workers[random.IntN(processes)].PID)
			}
			return s.atRest()
		}, 60*time.Second, 50*time.Millisecond, "the jobs of keys %d to %d do not come to rest", first, first+atOnce-1)
	}
	f.mend()
	found := s.settle(60 * time.Second)

	effects := map[string]int{}
	for _, r := range s.records(crashtest.Effect) {
		effects[r.Key]++
	}
	require.Len(t, effects, keys, "every key's side effect happened")
	require.Equal(t, keys*(copies-1), found.Skipped)
	require.Equal(t, keys, found.Effects-found.Repeated, "each once, but for the documented gap")
	require.GreaterOrEqual(t, f.died, keys/4)
	cut := slices.ContainsFunc(s.records(crashtest.Started), func(r crashtest.Record) bool { return r.Delivery > 1 })
	require.True(t, cut, "no handler was cut off, so nothing was tried")
	t.Logf("%d processes were killed; %d side effects, %d of them again because the kill fell between return and done",
		f.died, found.Effects, found.Repeated)
}
