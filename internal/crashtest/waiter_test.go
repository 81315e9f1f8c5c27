package crashtest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/smallage/smallage/internal/crashtest"
	"github.com/smallage/smallage/internal/redistest"
	smallage "github.com/smallage/smallage/runtime"
)

// waiterDeaths are the points of a process that waits, by how many connections it may use: with one, it hears of the
// outcome by a notice alone.
var waiterDeaths = []struct {
	point string
	n     int
	conns int
}{
	{"wait-looked", 1, 16},
	{"wait-looked", 1, 1},
	{"wait-token", 1, 16},
	{"wait-subscribe", 1, 1},
	{"wait-subscribed", 1, 1},
	{"wait-looked", 2, 1}, // after it subscribed
	{"wait-noticed", 1, 1},
}

// soon is generous: many tests share few cores.
const soon = 3 * time.Second

// awaited enqueues a job that nobody runs yet.
func (s *scene) awaited() smallage.JobID {
	s.t.Helper()
	id, err := crashtest.Plain.Enqueue(context.Background(), s.client, crashtest.Args{}, []smallage.Option[crashtest.Args]{crashtest.With.ResultTTL(time.Minute)})
	require.NoError(s.t, err)
	return id
}

func (s *scene) waiter(id smallage.JobID, waits, conns int, env ...string) *crashtest.Worker {
	s.t.Helper()
	setup := s.setup
	setup.WaitID, setup.Waits, setup.MaxWaitConns = id.String(), waits, conns
	return crashtest.StartWorker(s.t, setup, env...)
}

// listens reports whether so many processes block on the job's token or subscribe to its notice.
func (s *scene) listens(id smallage.JobID, want int) bool {
	ctx := context.Background()
	channel := s.ns + ":{r:" + id.String() + "}:notice"
	heard, err := s.rdb.PubSubShardNumSub(ctx, channel).Result()
	if err != nil {
		return false
	}
	clients, err := s.rdb.ClientList(ctx).Result()
	return err == nil && int(heard[channel])+strings.Count(clients, " cmd=blmove ") >= want
}

// allGot requires that every wait of the processes has got the outcome, and how long after it was written.
func (s *scene) allGot(id smallage.JobID, within time.Duration, waits int, waiters ...*crashtest.Worker) {
	s.t.Helper()
	res, err := s.client.Wait(context.Background(), id, 30*time.Second)
	require.NoError(s.t, err)
	require.True(s.t, res.OK(), res)
	for _, w := range waiters {
		state := w.AwaitEnd(20 * time.Second)
		require.True(s.t, state.Success(), "waiter %d ended with %v:\n%s", w.PID, state, w.Log())
		got, err := crashtest.ReadWaits(s.setup, w.PID)
		require.NoError(s.t, err)
		require.Len(s.t, got, waits)
		for _, g := range got {
			require.Equal(s.t, smallage.StatusOK, g.Status)
			require.Less(s.t, g.Got.Sub(res.FinishedAt), within)
		}
	}
	token := s.ns + ":{r:" + id.String() + "}:token"
	require.EqualValues(s.t, 1, s.rdb.LLen(context.Background(), token).Val(), "one token, put back by all")
	require.Positive(s.t, s.rdb.PTTL(context.Background(), token).Val())
}

func TestAWaiterThatDiesOrFreezesAtAnyStepKeepsTheOutcomeFromNobodyElse(t *testing.T) {
	t.Parallel()
	for _, death := range waiterDeaths {
		for _, how := range []string{"", ":pause"} {
			t.Run(fmt.Sprintf("%s %d of %d%s", death.point, death.n, death.conns, how), func(t *testing.T) {
				t.Parallel()
				s := newScene(t, redistest.Start(t))
				id := s.awaited()
				victim := s.waiter(id, 5, death.conns, fmt.Sprintf("SMALLAGE_POINT=%s:%d%s", death.point, death.n, how))
				gone := func() bool { return !victim.Alive() || how != "" && victim.IsStopped() }
				// It is the first to get the token.
				require.Eventually(t, func() bool { return gone() || s.listens(id, 1) }, 20*time.Second, 5*time.Millisecond)
				others := []*crashtest.Worker{s.waiter(id, 10, 16), s.waiter(id, 10, 1)}
				require.Eventually(t, func() bool { return s.listens(id, 2) }, 20*time.Second, 5*time.Millisecond)
				worker := s.worker()
				s.allGot(id, soon, 10, others...)
				require.Eventually(t, gone, 20*time.Second, 10*time.Millisecond, "the waiter never got to its point")
				if how != "" {
					victim.Thaw()
					s.allGot(id, time.Minute, 5, victim)
				}
				worker.Stop()
			})
		}
	}
}

func TestAThousandWaitersGetTheOutcomeAlthoughSomeDieAndFreezeInTheMiddle(t *testing.T) {
	t.Parallel()
	s := newScene(t, redistest.Start(t))
	id := s.awaited()
	const processes, waits = 10, 100
	var all []*crashtest.Worker
	for i := range processes {
		all = append(all, s.waiter(id, waits, 1+15*(i%2)))
	}
	require.Eventually(t, func() bool { return s.listens(id, processes) }, 30*time.Second, 5*time.Millisecond)
	worker := s.worker()
	all[0].Kill()
	all[1].Freeze()
	all[2].Freeze()
	all[3].Kill()
	s.allGot(id, soon, waits, all[4:]...)
	all[1].Thaw()
	all[2].Thaw()
	s.allGot(id, time.Minute, waits, all[1], all[2])
	worker.Stop()
}
