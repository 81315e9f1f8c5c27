package main

import "fmt"

// row is one thing measured, for several contenders side by side.
type row struct {
	name     string
	about    string
	order    order
	fill     bool // the jobs are enqueued before the measurement, by another process
	who      []string
	jobs     map[string]int // for contenders so slow that they get fewer
	show     []column
	once     bool   // measured in the first round alone
	generate string // the packages that the generator is run on, instead of an order
}

// column is one metric of a row, and how it is printed.
type column struct {
	metric, title, format string
	scale                 float64
	more                  bool // more is better
}

var (
	rate     = column{"rate", "jobs/s", "%.1fk", 1e-3, true}
	cpu      = column{"cpu", "client CPU s/100k", "%.2f", 1, false}
	worker   = column{"cpu", "worker CPU s/100k", "%.2f", 1, false}
	redisCPU = column{"redis", "Redis CPU s/100k", "%.2f", 1, false}
	both     = column{"both", "both", "%.2f", 1, false}
	commands = column{"commands", "Redis commands per job", "%.2f", 1, false}
	rss      = column{"rss", "worker RSS MB", "%.1f", 1.0 / (1 << 20), false}
	p50      = column{"p50", "p50 ms", "%.3f", 1, false}
	p99      = column{"p99", "p99 ms", "%.3f", 1, false}
	back50   = column{"return p50", "from return p50 ms", "%.3f", 1, false}
	back99   = column{"return p99", "from return p99 ms", "%.3f", 1, false}
	memory   = column{"bytes", "bytes per waiting job", "%.0f", 1, false}
	second   = column{"commands", "commands sent per second", "%.2f", 1, false}
	seconds  = column{"seconds", "seconds", "%.2f", 1, false}
	cpuTime  = column{"cpu", "CPU s", "%.2f", 1, false}
	peak     = column{"peak", "peak MB", "%.0f", 1.0 / (1 << 20), false}
	busy     = column{"cpu", "worker CPU %", "%.3f", 1, false}
)

// size is how much a run measures.
type size struct {
	rounds, jobs, samples int
	seconds               float64
	slow                  int // divides the jobs of slow contenders once more
}

var (
	short = size{rounds: 3, jobs: 50_000, samples: 300, seconds: 2, slow: 5}
	long  = size{rounds: 5, jobs: 100_000, samples: 1000, seconds: 5, slow: 5}
)

func plan(s size, brief bool) []row {
	drained := []column{rate, worker, redisCPU, both, commands}
	drain := func(name, about string, f features, who ...string) row {
		return row{
			name: name, about: about, fill: true, who: who, show: drained,
			order: order{Scenario: "drain", Jobs: s.jobs, Concurrency: 50, Features: f},
			jobs:  map[string]int{"asynq": s.jobs / s.slow, "river": s.jobs / s.slow / 10},
		}
	}
	waits := func(waiters int, who ...string) row {
		return row{
			name: "result, " + thousands(waiters) + " waiting", about: "enqueue to result seen, and from the handler's return to Wait's return, while others wait",
			order: order{Scenario: "result", Jobs: s.samples, Concurrency: 10, Waiters: waiters, Features: features{Result: true}},
			who:   who, jobs: map[string]int{"asynq": 5}, show: []column{p50, p99, back50, back99, commands},
		}
	}
	rows := []row{
		{
			name: "enqueue, 1 caller", about: "one job after another", who: []string{"XADD", "rueidis", "asynq", "smallage", "river"},
			order: order{Scenario: "enqueue", Jobs: s.jobs / 5, Callers: 1}, jobs: map[string]int{"river": s.jobs / 50},
			show: []column{rate, cpu, redisCPU, commands},
		},
		{
			name: "enqueue, 64 callers", about: "one client shared by 64 goroutines", who: []string{"XADD", "rueidis", "asynq", "smallage", "river"},
			order: order{Scenario: "enqueue", Jobs: s.jobs, Callers: 64}, jobs: map[string]int{"river": s.jobs / 50},
			show: []column{rate, cpu, redisCPU, commands},
		},
		{
			name: "batch", about: "500 jobs in one call", who: []string{"XADD", "rueidis", "smallage", "river"},
			order: order{Scenario: "batch", Jobs: 2 * s.jobs}, jobs: map[string]int{"river": s.jobs / 5},
			show: []column{rate, cpu, redisCPU},
		},
		drain("drain, plain", "no-op jobs, 50 at once", features{}, "ideal", "rueidis", "asynq", "smallage", "river"),
		drain("drain, dedup", "a dedup key per job", features{Dedup: true}, "ideal", "smallage"),
		drain("drain, result", "an outcome per job", features{Result: true}, "ideal", "asynq", "smallage"),
		drain("drain, both", "a dedup key and an outcome per job", features{Dedup: true, Result: true}, "ideal", "smallage"),
		{
			name: "idle latency", about: "enqueue to handler, one job at a time", who: []string{"ideal", "rueidis", "asynq", "smallage", "river"},
			order: order{Scenario: "latency", Jobs: s.samples, Concurrency: 10}, jobs: map[string]int{"asynq": 4, "river": 20},
			show: []column{p50, p99},
		},
		{
			name: "latency at 1,000 jobs/s", about: "enqueue to handler", who: []string{"ideal", "rueidis", "asynq", "smallage"},
			order: order{Scenario: "paced", Rate: 1000, Seconds: s.seconds, Concurrency: 50}, show: []column{p50, p99},
		},
		{
			name: "idle latency, dedup", about: "enqueue to handler where each job has a dedup key, one at a time", who: []string{"smallage"},
			order: order{Scenario: "latency", Jobs: s.samples, Concurrency: 10, Features: features{Dedup: true}}, show: []column{p50, p99},
		},
		waits(1, "ideal", "smallage", "asynq"),
		waits(100, "smallage"),
		waits(1000, "smallage"),
		waits(10000, "smallage"),
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
		},
	}
	hundred := drain("100 at once", "no-op jobs, 100 at once", features{}, "ideal", "asynq", "smallage")
	hundred.order.Concurrency, hundred.show = 100, []column{rss, rate}
	rows = append(rows, hundred)
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
		{"cluster client", features{Cluster: true}},
	} {
		r := drain("price: "+price.name, "Smallage's drain with this feature", price.f, "smallage")
		rows = append(rows, r)
	}
	generator := func(name, packages string) row {
		return row{
			name: name, about: fmt.Sprintf("a warm run on a made module of %d packages of %d tasks; CPU with the go command that it runs, peak memory its own", madePackages, madeTasks),
			generate: packages, who: []string{"go list", "smallagegen", anew}, show: []column{seconds, cpuTime, peak},
		}
	}
	if brief {
		return rows
	}
	for _, backlog := range []int{0, 10_000_000} {
		r := drain(fmt.Sprintf("backlog of %d million", backlog/1_000_000), "the same drain in front of a backlog, once", features{}, "smallage")
		r.order.Backlog, r.once, r.show = backlog, true, append(drained, memory)
		rows = append(rows, r)
	}
	return append(rows, generator("generator, all packages", "./..."), generator("generator, one package", "."))
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
