package main

import (
	"fmt"
	"time"
)

// row is one thing measured, for several contenders side by side.
type row struct {
	name     string
	table    string // the heading of the table that this row is a line of, if not its own
	label    string // of that line
	about    string
	order    order
	fill     bool // the jobs are enqueued before the measurement, by another process
	who      []string
	jobs     map[string]int // for contenders so slow that they get fewer
	show     []column
	once     []string // contenders that are measured in the first round alone
	pieces   int      // a round's jobs are measured in so many pieces, those of all contenders in turn; 0: 1
	generate string   // the packages that the generator is run on, instead of an order
	fsync    string   // the policy of the append-only file; empty: none
}

// column is one metric of a row, and how it is printed.
type column struct {
	metric, title, format string
	scale                 float64
}

var (
	rate     = column{"rate", "jobs/s", "%.1fk", 1e-3}
	cpu      = column{"cpu", "client CPU s/100k", "%.2f", 1}
	worker   = column{"cpu", "worker CPU s/100k", "%.2f", 1}
	redisCPU = column{"redis", "Redis CPU s/100k", "%.2f", 1}
	both     = column{"both", "both", "%.2f", 1}
	together = column{"both", "CPU s/100k of both", "%.2f", 1}
	commands = column{"commands", "Redis commands per job", "%.2f", 1}
	rss      = column{"rss", "worker RSS MB", "%.1f", 1.0 / (1 << 20)}
	p50      = column{"p50", "p50 ms", "%.3f", 1}
	p99      = column{"p99", "p99 ms", "%.3f", 1}
	back50   = column{"return p50", "from return p50 ms", "%.3f", 1}
	back99   = column{"return p99", "from return p99 ms", "%.3f", 1}
	memory   = column{"bytes", "bytes per waiting job", "%.0f", 1}
	second   = column{"commands", "commands sent per second", "%.2f", 1}
	seconds  = column{"seconds", "seconds", "%.2f", 1}
	cpuTime  = column{"cpu", "CPU s", "%.2f", 1}
	peak     = column{"peak", "peak MB", "%.0f", 1.0 / (1 << 20)}
	busy     = column{"cpu", "worker CPU %", "%.3f", 1}
	readSize = column{"reads", "reads per job", "%.3f", 1}
	arrivals = column{"arrivals", "messages to Redis per job", "%.3f", 1}
	clients  = column{"connections", "connections", "%.0f", 1}
)

// size is how much a run measures.
type size struct {
	rounds, jobs, samples int
	seconds               float64
	limit                 time.Duration // no round begins that would end later
	brief                 bool          // what takes time and no work is measured once; no backlog, no generator
}

var (
	short = size{rounds: 3, jobs: 50_000, samples: 300, seconds: 2, limit: 270 * time.Second, brief: true}
	long  = size{rounds: 5, jobs: 100_000, samples: 1000, seconds: 5, limit: 30 * time.Minute}
)

// asynq and river get fewer jobs to drain.
func (s size) slow() map[string]int {
	return map[string]int{"asynq": s.jobs / 5, "river": s.jobs / 50}
}

func plan(s size) []row {
	rows := []row{
		{
			name: "enqueue, 1 caller", about: "enqueuing, one job after another", who: []string{"XADD", "XADD, whole job", "rueidis", "asynq", "smallage", "river"},
			order: order{Scenario: "enqueue", Jobs: s.jobs / 5, Callers: 1}, jobs: map[string]int{"river": s.jobs / 50},
			// Where two processes take turns, a round trip takes five times as long where they sleep on two processors as
			// where they share one, for as long as the scheduler leaves them there.
			pieces: 20, show: []column{rate, cpu, redisCPU, commands},
		},
		{
			name: "enqueue, 64 callers", about: "enqueuing, one client shared by 64 goroutines", who: []string{"XADD", "XADD, whole job", "rueidis", "asynq", "smallage", "river"},
			order: order{Scenario: "enqueue", Jobs: s.jobs, Callers: 64}, jobs: map[string]int{"river": s.jobs / 50},
			show: []column{rate, cpu, redisCPU, commands},
		},
		{
			name: "batch", about: "500 jobs in one call", who: []string{"XADD", "XADD, whole job", "rueidis", "smallage", "river"},
			order: order{Scenario: "batch", Jobs: 2 * s.jobs}, jobs: map[string]int{"river": s.jobs / 5},
			show: []column{rate, cpu, redisCPU},
		},
		s.drain("drain, plain", "a worker of no-op jobs, 50 at once", features{}, "ideal", "rueidis", "asynq", "smallage", "river"),
		s.drain("drain, dedup", "the same with a dedup key per job", features{Dedup: true}, "ideal", "smallage"),
		s.drain("drain, result", "the same with an outcome per job", features{Result: true}, "ideal", "asynq", "smallage"),
		s.drain("drain, both", "the same with a dedup key and an outcome per job", features{Dedup: true, Result: true}, "ideal", "smallage"),
		{
			name: "idle latency", about: "enqueue to handler, one job at a time", who: []string{"ideal", "rueidis", "asynq", "smallage", "river"},
			order: order{Scenario: "latency", Jobs: s.samples, Concurrency: 10}, jobs: map[string]int{"asynq": 4, "river": 20},
			show: []column{p50, p99}, once: s.lazily("asynq", "river"),
		},
		{
			name: "latency at 1,000 jobs/s", about: "enqueue to handler", who: []string{"ideal", "rueidis", "asynq", "smallage"},
			order: order{Scenario: "paced", Rate: 1000, Seconds: s.seconds, Concurrency: 50}, show: []column{p50, p99},
			once: s.lazily("asynq"),
		},
		{
			name: "idle latency, dedup", about: "enqueue to handler where each job has a dedup key, one at a time", who: []string{"smallage"},
			order: order{Scenario: "latency", Jobs: s.samples, Concurrency: 10, Features: features{Dedup: true}}, show: []column{p50, p99},
		},
		s.wait(1, "ideal", "smallage", "asynq"),
		s.waitBackToBack("ideal", "smallage"),
		s.wait(100, "smallage"),
		s.wait(1000, "smallage"),
		s.wait(10000, "smallage"),
		{
			name: "two round trips", about: "PING, twice, on an idle server", who: []string{"XADD"},
			order: order{Scenario: "trips", Jobs: s.samples}, show: []column{p50, p99},
		},
		{
			name: "memory of a backlog", about: "Redis memory per waiting job of 16 bytes", who: []string{"ideal", "asynq", "smallage"},
			order: order{Scenario: "fill", Jobs: s.jobs}, show: []column{memory},
		},
		{
			name: "idle worker", about: "one queue, nothing to do", who: []string{"ideal", "asynq", "smallage"},
			order: order{Scenario: "idle", Seconds: s.seconds * 2, Concurrency: 100}, show: []column{second, busy},
			once: s.lazily("ideal", "asynq", "smallage"),
		},
	}
	hundred := s.drain("100 at once", "no-op jobs, 100 at once", features{}, "ideal", "asynq", "smallage")
	hundred.order.Concurrency, hundred.show = 100, []column{rss, rate}
	rows = append(rows, hundred)
	rows = append(rows, s.prices()...)
	rows = append(rows, s.persistent()...)
	rows = append(rows, s.spread()...)
	if s.brief {
		return rows
	}
	for _, backlog := range []int{0, 10_000_000} {
		r := s.drain(fmt.Sprintf("backlog of %d million", backlog/1_000_000), "the same drain in front of a backlog, once", features{}, "smallage")
		r.table, r.label = "backlog", fmt.Sprintf("%d million jobs wait behind", backlog/1_000_000)
		r.order.Backlog, r.once, r.show = backlog, r.who, append(drained, memory)
		rows = append(rows, r)
	}
	return append(rows, generator("generator, all packages", "./..."), generator("generator, one package", "."))
}

// lazily names contenders that a short run measures once.
func (s size) lazily(who ...string) []string {
	if s.brief {
		return who
	}
	return nil
}

var drained = []column{rate, worker, redisCPU, both, commands}

func (s size) drain(name, about string, f features, who ...string) row {
	return row{
		name: name, about: about, fill: true, who: who, show: drained, jobs: s.slow(),
		order: order{Scenario: "drain", Jobs: s.jobs, Concurrency: 50, Features: f},
	}
}

func (s size) wait(waiters int, who ...string) row {
	r := row{
		name: "result, " + thousands(waiters) + " waiting", about: "enqueue to result seen, and from the handler's return to Wait's return, one job at a time while others wait",
		order: order{Scenario: "result", Jobs: s.samples, Concurrency: 10, Waiters: waiters, Features: features{Result: true}},
		who:   who, jobs: map[string]int{"asynq": 5}, show: []column{p50, p99, back50, back99, commands}, once: s.lazily("asynq"),
	}
	if waiters > 1 {
		r.once = s.lazily(who...)
	}
	return r
}

func (s size) waitBackToBack(who ...string) row {
	r := s.wait(1, who...)
	r.name, r.about = "result, back to back", "the same without a pause between jobs: no processor falls asleep"
	r.order.BackToBack, r.once, r.jobs = true, nil, nil
	return r
}

// prices is the price of each feature: one table, in which only Smallage competes, with itself.
func (s size) prices() (rows []row) {
	for _, price := range []struct {
		name string
		f    features
	}{
		{"nothing", features{}},
		{"dedup", features{Dedup: true}},
		{"result", features{Result: true}},
		{"timeout", features{Timeout: true}},
		{"heartbeat each 100 ms", features{Heartbeat: true}},
		{"three middlewares", features{Middleware: true}},
		{"counters", features{Counters: true}},
		{"telemetry", features{Telemetry: true}},
		{"cluster client", features{Cluster: true}},
	} {
		r := s.drain("price: "+price.name, "Smallage's drain with one feature more than nothing. Telemetry is OpenTelemetry's SDK: "+
			"a counter of events, a histogram, a sampled span per job; the cluster has three masters and one queue", price.f, "smallage")
		r.table, r.label, r.show = "price of each feature", price.name, []column{together, worker, redisCPU, rate, commands}
		rows = append(rows, r)
	}
	return rows
}

// persistent is what an append-only file costs.
func (s size) persistent() (rows []row) {
	for _, policy := range []string{"everysec", "always"} {
		jobs, slow := s.jobs, s.slow()
		if policy == "always" {
			jobs, slow = s.jobs/2, map[string]int{"asynq": s.jobs / 25}
		}
		lone := row{
			name: "enqueue, 1 caller, appendfsync " + policy, about: "enqueuing with an append-only file, one job after another", who: []string{"XADD", "asynq", "smallage"},
			order: order{Scenario: "enqueue", Jobs: jobs / 20, Callers: 1}, show: []column{rate, cpu, redisCPU, commands},
		}
		many := lone
		many.about = "enqueuing with an append-only file, one client shared by 64 goroutines"
		many.name, many.order.Callers, many.order.Jobs = "enqueue, 64 callers, appendfsync "+policy, 64, jobs
		many.jobs = slow
		drain := s.drain("drain, plain, appendfsync "+policy, "a worker of no-op jobs, 50 at once, with an append-only file", features{}, "ideal", "asynq", "smallage")
		drain.order.Jobs, drain.jobs = jobs, slow
		for _, r := range []row{lone, many, drain} {
			r.fsync = policy
			rows = append(rows, r)
		}
	}
	return rows
}

func generator(name, packages string) row {
	return row{
		name: name, about: fmt.Sprintf("a warm run on a made module of %d packages of %d tasks; CPU with the go command that it runs, peak memory its own", madePackages, madeTasks),
		generate: packages, who: []string{"go list", "smallagegen", anew}, show: []column{seconds, cpuTime, peak},
	}
}

func thousands(n int) string {
	switch n {
	case 1000:
		return "1,000"
	case 10000:
		return "10,000"
	case 100:
		return "100"
	}
	return "1"
}
