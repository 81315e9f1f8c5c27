package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// child carries out one order and prints its metrics as one line of JSON.
func child(text string) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	run, known := scenarios[o.Scenario]
	q := newContender(o.Contender)
	if !known || q == nil {
		return fmt.Errorf("scenario %q of contender %q: there is no such thing", o.Scenario, o.Contender)
	}
	ctx := context.Background()
	err := q.open(ctx, &o)
	if errors.Is(err, errUnsupported) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open %s: %w", o.Contender, err)
	}
	defer q.close()
	m, err := run(ctx, &o, q)
	if errors.Is(err, errUnsupported) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s of %s: %w", o.Scenario, o.Contender, err)
	}
	return json.NewEncoder(os.Stdout).Encode(m)
}

// meter measures CPU seconds of this process and of Redis, and Redis's commands, between start and stop.
type meter struct {
	o     *order
	probe []*redis.Client
	began time.Time
	cpu   time.Duration
	prior usage
	file  *os.File
}

// usage is what servers say of themselves, summed.
type usage struct{ cpu, commands, reads, arrivals float64 }

func startMeter(ctx context.Context, o *order) (*meter, error) {
	m := &meter{o: o}
	for _, addr := range o.Redis {
		m.probe = append(m.probe, redis.NewClient(&redis.Options{Addr: addr, Protocol: 2, PoolSize: 1}))
	}
	var err error
	if m.prior, err = m.servers(ctx); err != nil {
		return nil, err
	}
	if o.Profile != "" {
		if m.file, err = os.Create(o.Profile); err != nil {
			return nil, err
		}
		if err := pprof.StartCPUProfile(m.file); err != nil {
			return nil, err
		}
	}
	m.cpu, m.began = ownCPU(), time.Now()
	return m, nil
}

func (m *meter) stop(ctx context.Context) (metrics, error) {
	took, cpu := time.Since(m.began), ownCPU()-m.cpu
	if m.file != nil {
		pprof.StopCPUProfile()
		if err := m.file.Close(); err != nil {
			return nil, err
		}
		allocs, err := os.Create(m.o.Profile + ".allocs")
		if err != nil {
			return nil, err
		}
		if err := errors.Join(pprof.Lookup("allocs").WriteTo(allocs, 0), allocs.Close()); err != nil {
			return nil, err
		}
	}
	now, err := m.servers(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range m.probe {
		_ = p.Close()
	}
	return metrics{
		"seconds": took.Seconds(), "cpu": cpu.Seconds(),
		"redis": now.cpu - m.prior.cpu, "commands": now.commands - m.prior.commands, "reads": now.reads - m.prior.reads,
		"arrivals": now.arrivals - m.prior.arrivals,
	}, nil
}

// servers sums over all servers, without what measuring itself sends.
func (m *meter) servers(ctx context.Context) (sum usage, err error) {
	for _, p := range m.probe {
		text, err := p.Info(ctx, "cpu", "stats", "commandstats").Result()
		if err != nil {
			return sum, err
		}
		for line := range strings.Lines(text) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			switch {
			case name == "used_cpu_sys", name == "used_cpu_user":
				seconds, _ := strconv.ParseFloat(value, 64)
				sum.cpu += seconds
			case name == "total_reads_processed": // what came in at once, from one connection
				n, _ := strconv.ParseFloat(value, 64)
				sum.arrivals += n
			case strings.HasPrefix(name, "cmdstat_info"), strings.HasPrefix(name, "cmdstat_config"),
				strings.HasPrefix(name, "cmdstat_hello"), strings.HasPrefix(name, "cmdstat_client"):
			case strings.HasPrefix(name, "cmdstat_"):
				n, _, _ := strings.Cut(strings.TrimPrefix(value, "calls="), ",")
				count, _ := strconv.ParseFloat(n, 64)
				sum.commands += count
				if name == "cmdstat_xreadgroup" {
					sum.reads += count
				}
			}
		}
	}
	return sum, nil
}

// connections are those that others have to the servers.
func (m *meter) connections(ctx context.Context) (sum float64, err error) {
	for _, p := range m.probe {
		info := p.InfoMap(ctx, "clients")
		if err := info.Err(); err != nil {
			return 0, err
		}
		n, err := strconv.ParseFloat(info.Item("Clients", "connected_clients"), 64)
		if err != nil {
			return 0, err
		}
		sum += n - 1 // the probe's own
	}
	return sum, nil
}

// ownCPU is what this process has used, in user and system mode.
func ownCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// residentBytes is this process's resident memory.
func residentBytes() float64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseFloat(fields[1], 64)
	return pages * float64(os.Getpagesize())
}
