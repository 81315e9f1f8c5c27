package crashtest_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/smallage/smallage/internal/crashtest"
	"github.com/smallage/smallage/internal/redistest"
)

// chaos breaks workers, their connections and Redis in an order that its seed fixes.
type chaos struct {
	*scene
	rng     *rand.Rand
	server  *redistest.Server
	proxy   *redistest.Proxy // between workers and the server
	workers []*crashtest.Worker
	frozen  map[*crashtest.Worker]time.Time // and when each thaws
	did     map[string]int
}

// An action happens in each round as often as its number says.
var chaosRound = map[string]int{"kill": 8, "terminate": 2, "freeze": 3, "cut": 4, "cut mid-reply": 10, "stall": 1, "crash Redis": 1, "restart Redis": 1}

// actionsPerRound is the sum of chaosRound.
func actionsPerRound() (sum int) {
	for _, n := range chaosRound {
		sum += n
	}
	return sum
}

// round does every action of one round, in random order, and calls before ahead of each.
func (c *chaos) round(before func()) {
	var actions []string
	for action, n := range chaosRound {
		for range n {
			actions = append(actions, action)
		}
	}
	slices.Sort(actions) // maps have no order that a seed could fix
	c.rng.Shuffle(len(actions), func(i, j int) { actions[i], actions[j] = actions[j], actions[i] })
	for _, action := range actions {
		before()
		time.Sleep(time.Duration(50+c.rng.IntN(250)) * time.Millisecond) // what lies between two blows is the test
		c.thaw(false)
		c.act(action)
		c.did[action]++
	}
}

func (c *chaos) act(action string) {
	told := func(w *crashtest.Worker) *crashtest.Worker {
		c.t.Logf("%s %s %d", time.Now().UTC().Format("15:04:05.000"), action, w.PID)
		return w
	}
	switch action {
	case "kill":
		w := told(c.pick())
		w.Kill()
		c.look(func() error { return c.witness.Killed(w.PID) })
		c.replace(w)
	case "terminate":
		w := told(c.pick())
		w.Terminate()
		state := w.AwaitEnd(40 * time.Second)
		require.True(c.t, state.Success(), "worker %d ended with %v after SIGTERM", w.PID, state)
		c.replace(w)
	case "freeze":
		w := told(c.pick())
		w.Freeze()
		c.look(func() error { return c.witness.Frozen(w.PID) })
		c.frozen[w] = time.Now().Add(c.setup.Lease + time.Duration(c.rng.Int64N(int64(2*c.setup.Lease))))
	case "cut":
		c.proxy.Cut()
	case "cut mid-reply":
		c.proxy.CutAfterBytes(1 + c.rng.IntN(2000))
	case "stall":
		c.proxy.Stall(true)
		time.Sleep(c.setup.Lease / 4)
		c.proxy.Stall(false)
	case "crash Redis":
		c.server.Crash()
	case "restart Redis":
		c.server.Restart()
	}
}

// pick returns a worker that is running; frozen ones are left to thaw.
func (c *chaos) pick() *crashtest.Worker {
	for {
		var running []*crashtest.Worker
		for _, w := range c.workers {
			if _, frozen := c.frozen[w]; !frozen {
				running = append(running, w)
			}
		}
		if len(running) > 1 {
			return running[c.rng.IntN(len(running))]
		}
		time.Sleep(50 * time.Millisecond)
		c.thaw(false)
	}
}

func (c *chaos) replace(w *crashtest.Worker) {
	c.workers = slices.DeleteFunc(c.workers, func(other *crashtest.Worker) bool { return other == w })
	c.start()
}

func (c *chaos) start() { c.workers = append(c.workers, c.worker()) }

// thaw lets those go on whose time has come, or all.
func (c *chaos) thaw(all bool) {
	for w, at := range c.frozen {
		if all || time.Now().After(at) {
			w.Thaw()
			delete(c.frozen, w)
		}
	}
}

// look calls the witness once what was on its way has reached the server.
func (c *chaos) look(see func() error) {
	time.Sleep(20 * time.Millisecond)
	require.NoError(c.t, see())
}

// end brings everything back to order, and stops the workers once the queue is at rest.
func (c *chaos) end(limit time.Duration) *crashtest.Findings {
	c.thaw(true)
	c.proxy.CutAfterBytes(-1)
	found := c.settle(limit)
	require.Eventually(c.t, func() bool {
		consumers, err := c.rdb.XInfoConsumers(context.Background(), c.key("stream"), "workers").Result()
		return err == nil && len(consumers) <= len(c.workers)+1
	}, time.Minute, 50*time.Millisecond, "the consumers of dead workers are removed")
	for _, w := range c.workers {
		w.Terminate()
	}
	for _, w := range c.workers {
		state := w.AwaitEnd(40 * time.Second)
		require.True(c.t, state.Success(), "worker %d ended with %v after SIGTERM", w.PID, state)
	}
	return found
}

func newChaos(t *testing.T, seed uint64, workers int) *chaos {
	t.Helper()
	server := redistest.Start(t, redistest.AOF())
	proxy := redistest.NewProxy(t, server.Addr())
	s := newScene(t, server)
	s.setup.Addr = proxy.Addr()
	s.setup.Lease = 2 * time.Second
	c := &chaos{
		scene: s, rng: rand.New(rand.NewPCG(seed, seed)), server: server, proxy: proxy,
		frozen: map[*crashtest.Worker]time.Time{}, did: map[string]int{},
	}
	for range workers {
		c.start()
	}
	return c
}
