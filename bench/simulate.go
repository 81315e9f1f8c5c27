package main

import (
	"container/heap"
	"math/rand/v2"
)

// model is a closed network of batches, small enough to be understood and fed with what was measured. Each master and each
// worker is one core that serves one thing at a time, first come, first served. For each queue that it serves, a worker has
// two batches under way, since it reads the next jobs while it runs and ends the last ones. A batch goes from its queue's
// master (the read, and the enqueuing of as many jobs again) over the network to its worker (decoding, handlers that do
// nothing, endings) and back to the master (the flush of endings). Every queue always has jobs waiting.
type model struct {
	masters int
	queues  []int   // the master on which each lies
	workers [][]int // the queues that each serves

	batch             float64 // jobs of a read
	enqueueR, drainR  float64 // seconds of a master's core, per job
	workerC           float64 // seconds of a worker's core, per job
	trip              float64 // seconds on the network, there and back
	seconds, settling float64 // what is simulated, and what of it is left out at first
}

// outcome is what a simulation found.
type outcome struct {
	rate            float64   // jobs per second
	masterBusy      []float64 // part of the time
	workerCoresBusy float64
}

const batchesUnderWay = 2

// visit is the arrival of a batch where it is served next.
type visit struct {
	at            float64
	worker, queue int
	stage         stage
}

type stage int

const (
	reading stage = iota
	running
	ending
)

// simulate lets the batches go round. Arrivals are taken in the order of time, so that a server's next free moment is all
// that has to be known of it.
func (m *model) simulate() outcome {
	random := rand.New(rand.NewPCG(1, 2)) // the same in every run
	masters, workers := make([]core, m.masters), make([]core, len(m.workers))
	for i := range masters {
		masters[i].from, masters[i].to = m.settling, m.seconds
	}
	for i := range workers {
		workers[i].from, workers[i].to = m.settling, m.seconds
	}
	var due visits
	for w, queues := range m.workers {
		for _, q := range queues {
			for range batchesUnderWay {
				due = append(due, visit{at: random.Float64() * m.settling / 2, worker: w, queue: q})
			}
		}
	}
	heap.Init(&due)
	ended := 0.0
	for len(due) > 0 && due[0].at < m.seconds {
		v := &due[0]
		master := &masters[m.queues[v.queue]]
		switch v.stage {
		case reading:
			v.at, v.stage = master.serve(v.at, m.batch*(m.enqueueR+m.drainR/2))+m.trip/2, running
		case running:
			v.at, v.stage = workers[v.worker].serve(v.at, m.batch*m.workerC)+m.trip/2, ending
		case ending:
			done := master.serve(v.at, m.batch*m.drainR/2)
			if done >= m.settling && done < m.seconds {
				ended += m.batch
			}
			v.at, v.stage = done+m.trip, reading
		}
		heap.Fix(&due, 0)
	}
	found := outcome{rate: ended / (m.seconds - m.settling)}
	for i := range masters {
		found.masterBusy = append(found.masterBusy, masters[i].part())
	}
	for i := range workers {
		found.workerCoresBusy += workers[i].part()
	}
	return found
}

// core is one core, first come, first served, which counts how long it is busy from one moment to another.
type core struct{ free, busy, from, to float64 }

func (s *core) serve(at, takes float64) (done float64) {
	start := max(at, s.free)
	s.free = start + takes
	s.busy += max(0, min(s.free, s.to)-max(start, s.from))
	return s.free
}

func (s *core) part() float64 { return s.busy / (s.to - s.from) }

// visits is a heap by time.
type visits []visit

func (v visits) Len() int           { return len(v) }
func (v visits) Less(i, j int) bool { return v[i].at < v[j].at }
func (v visits) Swap(i, j int)      { v[i], v[j] = v[j], v[i] }
func (v *visits) Push(x any)        { *v = append(*v, x.(visit)) }

func (v *visits) Pop() any {
	last := (*v)[len(*v)-1]
	*v = (*v)[:len(*v)-1]
	return last
}
