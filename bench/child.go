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
	redis float64
	calls float64
	file  *os.File
}

func startMeter(ctx context.Context, o *order) (*meter, error) {
	m := &meter{o: o}
	for _, addr := range o.Redis {
		m.probe = append(m.probe, redis.NewClient(&redis.Options{Addr: addr, Protocol: 2, PoolSize: 1}))
	}
	var err error
	if m.redis, m.calls, err = m.server(ctx); err != nil {
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
	server, calls, err := m.server(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range m.probe {
		_ = p.Close()
	}
	return metrics{"seconds": took.Seconds(), "cpu": cpu.Seconds(), "redis": server - m.redis, "commands": calls - m.calls}, nil
}

// server sums CPU seconds and commands over all servers, without what measuring itself sends.
func (m *meter) server(ctx context.Context) (cpu, calls float64, err error) {
	for _, p := range m.probe {
		text, err := p.Info(ctx, "cpu", "commandstats").Result()
		if err != nil {
			return 0, 0, err
		}
		for line := range strings.Lines(text) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			switch {
			case name == "used_cpu_sys", name == "used_cpu_user":
				seconds, _ := strconv.ParseFloat(value, 64)
				cpu += seconds
			case strings.HasPrefix(name, "cmdstat_info"), strings.HasPrefix(name, "cmdstat_config"),
				strings.HasPrefix(name, "cmdstat_hello"), strings.HasPrefix(name, "cmdstat_client"):
			case strings.HasPrefix(name, "cmdstat_"):
				n, _, _ := strings.Cut(strings.TrimPrefix(value, "calls="), ",")
				count, _ := strconv.ParseFloat(n, 64)
				calls += count
			}
		}
	}
	return cpu, calls, nil
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
