package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// measured is what the model of more masters is fed with: medians of this run, per job, in seconds of one core.
type measured struct {
	enqueueR, enqueueC float64 // Redis, enqueuer
	drainR, drainW     float64 // Redis, worker
	batch, trip, bytes float64
	connections        float64 // of a worker with its queues on all measured masters
}

func (b *benchmark) measured() (in measured, complete bool) {
	complete = true
	take := func(row, who, metric string) float64 {
		values := of(b.found[cell{row, who}], metric)
		if len(values) == 0 {
			complete = false
			return 0
		}
		return median(values)
	}
	enqueue, drain := "enqueue on 3 masters", "drain on 3 masters"
	in.enqueueR, in.enqueueC = take(enqueue, "smallage", "redis")/1e5, take(enqueue, "smallage", "cpu")/1e5
	in.drainR, in.drainW = take(drain, "smallage", "redis")/1e5, take(drain, "smallage", "cpu")/1e5
	in.batch = 1 / take(drain, "smallage", "reads")
	in.trip = take("two round trips", "XADD", "p50") / 2 / 1e3
	in.bytes = take("memory of a backlog", "smallage", "bytes")
	in.connections = take(drain, "smallage", "connections")
	return in, complete
}

// deployment is a case that the model is asked about.
type deployment struct{ masters, queues int }

var deployments = []deployment{{1, 6}, {10, 10}, {10, 60}, {10, 240}, {100, 100}, {100, 600}, {100, 2400}}

const queuesOfWorker = testMasters * queuesPerMaster // as measured

// spareCores is how many worker cores there are for each that all masters together could keep busy.
const spareCores = 1.5

// lay makes the model of a deployment: queues lie where their names' slots put them, and each worker serves six of them.
func (in measured) lay(d deployment) *model {
	m := &model{
		masters: d.masters, batch: in.batch, enqueueR: in.enqueueR, drainR: in.drainR, workerC: in.drainW, trip: in.trip,
		seconds: 0.25, settling: 0.05,
	}
	for q := range d.queues {
		m.queues = append(m.queues, masterOf(fmt.Sprintf("queue%d", q), d.masters))
	}
	atOnce := min(queuesOfWorker, d.queues)
	needed := spareCores * float64(d.masters) * in.drainW / (in.enqueueR + in.drainR)
	serving := max(1, math.Ceil(needed*float64(atOnce)/float64(d.queues))) // workers of each queue
	for w := range int(math.Ceil(serving * float64(d.queues) / float64(atOnce))) {
		var own []int
		for i := range atOnce {
			own = append(own, (w*atOnce+i)%d.queues)
		}
		m.workers = append(m.workers, own)
	}
	return m
}

// evenRate is what all queues can do where each has as many jobs to do as any other: the master with most of them is the
// first that cannot keep up.
func (in measured) evenRate(m *model) float64 {
	most := slices.Max(queuesEach(m))
	return float64(len(m.queues)) / float64(most) / (in.enqueueR + in.drainR)
}

func queuesEach(m *model) []int {
	on := make([]int, m.masters)
	for _, master := range m.queues {
		on[master]++
	}
	return on
}

// bound says in words what keeps a deployment from doing more.
func bound(m *model, found outcome) string {
	slices.Sort(found.masterBusy)
	idle := 0
	for _, n := range queuesEach(m) {
		if n == 0 {
			idle++
		}
	}
	switch {
	case found.masterBusy[m.masters-1] < 0.95:
		return "the workers"
	case idle > 0:
		return fmt.Sprintf("the queues' number: %d masters have none", idle)
	}
	return "the masters' cores"
}

const backlog = 100_000_000

// scale prints what the model says of more masters, and what it was fed with.
func (b *benchmark) scale(out *strings.Builder) {
	in, complete := b.measured()
	if !complete {
		return
	}
	fmt.Fprintf(out, "\n### the model of more masters: what it is fed with\n\n"+
		"Medians of this run: two tables above, their lines of %d masters, and a waiting job's memory\n\n| what | measured |\n|---|---:|\n", testMasters)
	for _, l := range []struct {
		what, format string
		value        float64
	}{
		{"Redis CPU to enqueue, s/100k", "%.2f", in.enqueueR * 1e5},
		{"Redis CPU to drain, s/100k", "%.2f", in.drainR * 1e5},
		{"enqueuer CPU, s/100k", "%.2f", in.enqueueC * 1e5},
		{"worker CPU, s/100k", "%.2f", in.drainW * 1e5},
		{"jobs of a read", "%.1f", in.batch},
		{"round trip, ms", "%.3f", in.trip * 1e3},
		{"connections of a worker", "%.0f", in.connections},
		{"bytes of a waiting job", "%.0f", in.bytes},
	} {
		fmt.Fprintf(out, "| %s | "+l.format+" |\n", l.what, l.value)
	}
	fmt.Fprintf(out, "\n### the model of more masters: what it says\n\n"+
		"Simulated, not measured: jobs that do nothing, each enqueued and worked off, and always some waiting in each queue. Queues lie where the "+
		"slots of their names put them. A worker process has one core, 150 handlers at once and six queues, as measured; there are %.1f times as many as the masters can "+
		"keep busy, or as many as the queues take. The last jobs/s are those of queues of which none has more to do than another\n\n"+
		"| masters | queues | worker processes | jobs/s | what bounds it | busiest master %% | masters' mean %% | worker cores busy | enqueuer cores | connections of a master | jobs/s, all queues alike |\n"+
		"|---:|---:|---:|---:|---|---:|---:|---:|---:|---:|---:|\n", spareCores)
	for _, d := range deployments {
		m := in.lay(d)
		found := m.simulate()
		sum := 0.0
		for _, part := range found.masterBusy {
			sum += part
		}
		fmt.Fprintf(out, "| %d | %d | %d | %.0fk | %s | %.0f | %.0f | %.1f | %.1f | %.0f | %.0fk |\n", d.masters, d.queues, len(m.workers), found.rate/1e3,
			bound(m, found), slices.Max(found.masterBusy)*100, sum/float64(d.masters)*100, found.workerCoresBusy, found.rate*in.enqueueC,
			float64(len(m.workers))*in.connections/float64(d.masters), in.evenRate(m)/1e3)
	}
	fmt.Fprintf(out, "\n### memory of 100 million waiting jobs\n\nReckoned from the bytes of a waiting job above; spread over masters, each needs its part\n\n"+
		"| masters | GB in all | GB each |\n|---:|---:|---:|\n")
	for _, masters := range []int{1, 10, 100} {
		gb := in.bytes * backlog / 1e9
		fmt.Fprintf(out, "| %d | %.1f | %.2f |\n", masters, gb, gb/float64(masters))
	}
}
