package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// report is the run as Markdown: what it ran on, goals, and one table per row.
func (b *benchmark) report(ctx context.Context) string {
	var out strings.Builder
	out.WriteString("# Results\n\n")
	b.header(ctx, &out)
	b.goals(&out)
	for _, r := range b.rows {
		b.table(&out, r)
	}
	for _, text := range b.failed {
		fmt.Fprintf(&out, "\nFailed: %s\n", text)
	}
	fmt.Fprintf(&out, "\n%d jobs were run or enqueued in all measurements together.\n", b.jobs())
	return out.String()
}

func (b *benchmark) header(ctx context.Context, out *strings.Builder) {
	persistence := "no persistence"
	if b.fsync != "" {
		persistence = "append-only file, appendfsync " + b.fsync
	}
	version := "unknown"
	rdb := redis.NewClient(&redis.Options{Addr: b.redis})
	if info := rdb.InfoMap(ctx, "server"); info.Err() == nil {
		version = info.Item("Server", "redis_version")
	}
	_ = rdb.Close()
	postgres := "PostgreSQL: " + b.missing
	if b.postgres != "" {
		text, _ := exec.Command("sh", "-c", "psql --version").Output()
		postgres = strings.TrimSpace(string(text)) + ", its defaults (durable)"
	}
	fmt.Fprintf(out, "Measured %s, %d rounds, %s in all.\n\n", b.began.UTC().Format("2006-01-02 15:04"), b.size.rounds, time.Since(b.began).Round(time.Second))
	fmt.Fprintf(out, "- Machine: %d cores, %s, load when it ended: %s\n", runtime.NumCPU(), cpuModel(), load())
	fmt.Fprintf(out, "- %s, Redis %s on loopback, %s; %s\n", runtime.Version(), version, persistence, postgres)
	fmt.Fprintf(out, "- %s\n", strings.Join(versions(), ", "))
	fmt.Fprintf(out, "- Payload: one UUID (16 bytes; Smallage and river carry it as JSON with its parameter's name)\n")
	fmt.Fprintf(out, "- Cells: median (lowest to highest). `ideal` and `XADD` are bare go-redis, no queue: no leases, retries or decoding.\n")
}

func versions() (list []string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	for _, dep := range info.Deps {
		switch dep.Path {
		case "github.com/redis/go-redis/v9", "github.com/redis/rueidis", "github.com/hibiken/asynq", "github.com/riverqueue/river":
			name := dep.Path[strings.LastIndexByte(strings.TrimSuffix(dep.Path, "/v9"), '/')+1:]
			list = append(list, strings.TrimSuffix(name, "/v9")+" "+dep.Version)
		}
	}
	return list
}

func cpuModel() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

func load() string {
	text, _ := os.ReadFile("/proc/loadavg")
	fields := strings.Fields(string(text))
	if len(fields) < 3 {
		return "unknown"
	}
	return strings.Join(fields[:3], " ")
}

func (b *benchmark) jobs() (n int) {
	for _, list := range b.found {
		for _, m := range list {
			n += int(m["jobs"])
		}
	}
	return n
}

func (b *benchmark) table(out *strings.Builder, r row) {
	fmt.Fprintf(out, "\n### %s\n\n%s%s\n\n|  |", r.name, strings.ToUpper(r.about[:1]), r.about[1:])
	for _, c := range r.show {
		fmt.Fprintf(out, " %s |", c.title)
	}
	out.WriteString("\n|---|" + strings.Repeat("---:|", len(r.show)) + "\n")
	for _, name := range r.who {
		list := b.found[cell{r.name, name}]
		fmt.Fprintf(out, "| %s |", name)
		for _, c := range r.show {
			if values := of(list, c.metric); len(values) > 0 {
				f := func(v float64) string { return fmt.Sprintf(c.format, v*c.scale) }
				fmt.Fprintf(out, " %s (%s to %s) |", f(median(values)), f(slices.Min(values)), f(slices.Max(values)))
			} else {
				out.WriteString(" – |")
			}
		}
		out.WriteString("\n")
	}
}

func of(list []metrics, metric string) (values []float64) {
	for _, m := range list {
		if v, ok := m[metric]; ok {
			values = append(values, v)
		}
	}
	return values
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n%2 == 1 {
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}
