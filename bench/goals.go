package main

import (
	"fmt"
	"strings"
)

// goal is a bound on a figure of Smallage: on its ratio to another contender's in the same rounds, or on the figure itself.
type goal struct {
	what   string
	row    string
	who    string // whose figure; empty: Smallage's
	metric string
	to     string // the other contender; empty: an absolute bound
	less   string // the row whose figure is taken off first
	other  string // the row of the other contender, where it is not the same
	least  bool   // at least the bound; else at most
	bound  float64
	scale  float64 // of an absolute figure; 0: 1
	unit   string
}

var goals = []goal{
	{what: "enqueue, 1 caller", row: "enqueue, 1 caller", metric: "rate", to: "XADD", least: true, bound: 0.95},
	{what: "enqueue, 1 caller, to an XADD of the whole job", row: "enqueue, 1 caller", metric: "rate", to: "XADD, whole job", least: true, bound: 0.95},
	{what: "enqueue, 64 callers", row: "enqueue, 64 callers", metric: "rate", to: "asynq", least: true, bound: 2},
	{what: "enqueue, 64 callers", row: "enqueue, 64 callers", metric: "rate", to: "rueidis", least: true, bound: 0.8},
	{what: "batch of 500", row: "batch", metric: "rate", to: "XADD", least: true, bound: 0.85},
	{what: "batch of 500, to XADDs of whole jobs", row: "batch", metric: "rate", to: "XADD, whole job", least: true, bound: 0.85},
	{what: "drain, plain", row: "drain, plain", metric: "rate", to: "ideal", least: true, bound: 0.75},
	{what: "drain, plain", row: "drain, plain", metric: "rate", to: "asynq", least: true, bound: 12},
	{what: "drain with dedup", row: "drain, dedup", metric: "rate", to: "ideal", least: true, bound: 0.7},
	{what: "drain with result", row: "drain, result", metric: "rate", to: "ideal", least: true, bound: 0.7},
	{what: "drain with both", row: "drain, both", metric: "rate", to: "ideal", least: true, bound: 0.7},
	{what: "idle, enqueue to handler, p50", row: "idle latency", metric: "p50", to: "ideal", bound: 1.2},
	{what: "idle, enqueue to handler, p99", row: "idle latency", metric: "p99", to: "ideal", bound: 2},
	{what: "what dedup adds to it, p50, in round trips (of PING)", row: "idle latency, dedup", metric: "p50", less: "idle latency", to: "XADD", other: "two round trips", bound: 1.5, scale: 2},
	{what: "at 1,000 jobs/s, p99", row: "latency at 1,000 jobs/s", metric: "p99", to: "ideal", bound: 2},
	{what: "enqueue to result seen, p50, 1 waiter", row: "result, 1 waiting", metric: "p50", to: "ideal", bound: 1.5},
	{what: "enqueue to result seen, p50, 1,000 waiters", row: "result, 1,000 waiting", metric: "p50", to: "ideal", other: "result, 1 waiting", bound: 1.5},
	{what: "handler's return to Wait's return, p50, to two round trips", row: "result, 1 waiting", metric: "return p50", to: "XADD", other: "two round trips", bound: 1.5},
	{what: "handler's return to Wait's return, p99", row: "result, 1 waiting", metric: "return p99", bound: 5, unit: " ms"},
	{what: "worker CPU per job", row: "drain, plain", metric: "cpu", to: "asynq", bound: 1.0 / 8},
	{what: "Redis CPU per job", row: "drain, plain", metric: "redis", to: "asynq", bound: 1.0 / 6},
	{what: "worker and Redis CPU, plain", row: "drain, plain", metric: "both", to: "ideal", bound: 1.6},
	{what: "worker and Redis CPU, result", row: "drain, result", metric: "both", to: "ideal", bound: 1.6},
	{what: "Redis commands per plain job", row: "drain, plain", metric: "commands", bound: 0.2},
	{what: "Redis memory per waiting job beyond its arguments", row: "memory of a backlog", metric: "bytes", bound: 100, unit: " B"},
	{what: "worker RSS at 100 at once", row: "100 at once", metric: "rss", bound: 30, scale: 1.0 / (1 << 20), unit: " MB"},
	{what: "idle worker, Redis commands per second and queue", row: "idle worker", metric: "commands", bound: 2},
	{what: "smallagegen ./..., to go list -export -deps ./...", row: "generator, all packages", who: "smallagegen", metric: "seconds", to: "go list", bound: 1.5},
	{what: "smallagegen for one package, to go list -export -deps .", row: "generator, one package", who: "smallagegen", metric: "seconds", to: "go list", bound: 2},
	{what: "smallagegen ./..., peak memory", row: "generator, all packages", who: "smallagegen", metric: "peak", bound: 500, scale: 1.0 / (1 << 20), unit: " MB"},
	{what: "idle worker, CPU", row: "idle worker", metric: "cpu", bound: 0.2, unit: " %"},
}

// argumentBytes is what the arguments of a job take: {"docID":"…"}.
const argumentBytes = 48

// goals prints each goal with what was found. A ratio is that of the medians.
func (b *benchmark) goals(out *strings.Builder) {
	out.WriteString("\n### Goals\n\n| what | goal | found | reached |\n|---|---|---|---|\n")
	for _, g := range goals {
		who := g.who
		if who == "" {
			who = "smallage"
		}
		own := of(b.found[cell{g.row, who}], g.metric)
		if len(own) == 0 {
			continue
		}
		found, bound := median(own), fmt.Sprintf("%.3g%s", g.bound, g.unit)
		if g.to != "" {
			other := g.row
			if g.other != "" {
				other = g.other
			}
			theirs := of(b.found[cell{other, g.to}], g.metric)
			if len(theirs) == 0 {
				continue
			}
			if less := of(b.found[cell{g.less, who}], g.metric); len(less) > 0 {
				found -= median(less)
			}
			found /= median(theirs)
			bound = fmt.Sprintf("%.3g × %s", g.bound, g.to)
		}
		if g.metric == "bytes" {
			found -= argumentBytes
		}
		if g.scale != 0 {
			found *= g.scale
		}
		sign, reached := "≤", found <= g.bound
		if g.least {
			sign, reached = "≥", found >= g.bound
		}
		word := "yes"
		if !reached {
			word = "**no**"
		}
		fmt.Fprintf(out, "| %s | %s %s | %.3g | %s |\n", g.what, sign, bound, found, word)
	}
}
