package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// evenly is a model whose queues lie on the masters in turn and are served by one worker each.
func evenly(masters, queues int) *model {
	m := &model{masters: masters, batch: 10, seconds: 2, settling: 0.5}
	for q := range queues {
		m.queues = append(m.queues, q%masters)
		m.workers = append(m.workers, []int{q})
	}
	return m
}

func TestSimulationMeetsWhatCanBeReckoned(t *testing.T) {
	t.Parallel()
	t.Run("a master with workers to spare is its own bound", func(t *testing.T) {
		t.Parallel()
		m := evenly(1, 8)
		m.enqueueR, m.drainR, m.workerC, m.trip = 2e-6, 6e-6, 4e-6, 1e-4
		found := m.simulate()
		require.InEpsilon(t, 1/8e-6, found.rate, 0.01)
		require.InEpsilon(t, 1, found.masterBusy[0], 0.01)
		require.InEpsilon(t, 0.5, found.workerCoresBusy, 0.01)
	})
	t.Run("a slow worker is the bound of a quick master", func(t *testing.T) {
		t.Parallel()
		m := evenly(1, 1)
		m.enqueueR, m.drainR, m.workerC, m.trip = 1e-6, 2e-6, 20e-6, 1e-5
		found := m.simulate()
		require.InEpsilon(t, 1/20e-6, found.rate, 0.01)
		require.InEpsilon(t, 1, found.workerCoresBusy, 0.01)
		require.InEpsilon(t, 3.0/20, found.masterBusy[0], 0.02)
	})
	t.Run("a long way is the bound where nobody is busy", func(t *testing.T) {
		t.Parallel()
		m := evenly(1, 1)
		m.enqueueR, m.drainR, m.workerC, m.trip = 1e-9, 2e-9, 2e-9, 1e-3
		// A batch goes to the worker, back to the master, and over the network once more for the next read.
		require.InEpsilon(t, batchesUnderWay*m.batch/(2*m.trip), m.simulate().rate, 0.01)
	})
	t.Run("ten masters do ten times what one does", func(t *testing.T) {
		t.Parallel()
		rates := map[int]float64{}
		for _, masters := range []int{1, 10} {
			m := evenly(masters, 6*masters)
			m.enqueueR, m.drainR, m.workerC, m.trip = 2e-6, 6e-6, 4e-6, 1e-4
			rates[masters] = m.simulate().rate
		}
		require.InEpsilon(t, 10, rates[10]/rates[1], 0.01)
	})
	t.Run("a master without queues does nothing", func(t *testing.T) {
		t.Parallel()
		m := evenly(2, 8)
		for q := range m.queues {
			m.queues[q] = 0
		}
		m.enqueueR, m.drainR, m.workerC, m.trip = 2e-6, 6e-6, 4e-6, 1e-4
		found := m.simulate()
		require.InEpsilon(t, 1/8e-6, found.rate, 0.01)
		require.Zero(t, found.masterBusy[1])
	})
}

func TestQueuesOfMeasurementsLieOnTheMastersTheyAreMeantFor(t *testing.T) {
	t.Parallel()
	// From Redis itself: CLUSTER KEYSLOT "smallage:{q:bench}:stream".
	require.Equal(t, map[string]int{"bench": 7931, "default": 270}, map[string]int{"bench": slot("bench"), "default": slot("default")})
	for masters := 1; masters <= testMasters; masters++ {
		on := map[int]int{}
		names := map[string]bool{}
		for _, name := range queuesOn(masters) {
			on[masterOf(name, testMasters)]++
			names[name] = true
		}
		require.Len(t, names, queuesPerMaster*masters)
		require.Len(t, on, masters)
		for m, n := range on {
			require.Less(t, m, masters)
			require.Equal(t, queuesPerMaster, n, fmt.Sprintf("on master %d of %d", m, masters))
		}
	}
}
