package main

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

// clocked runs a worker beside the measurement, and notes when each job's handler was called.
type clocked struct {
	began, handled []time.Time
	arrived        chan int
	stop           func() error
}

func startClocked(ctx context.Context, q contender, jobs int) *clocked {
	c := &clocked{began: make([]time.Time, jobs), handled: make([]time.Time, jobs), arrived: make(chan int, jobs)}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		done <- q.work(ctx, func(id uuid.UUID) {
			n := number(id)
			if n < len(c.handled) && c.handled[n].IsZero() {
				c.handled[n] = time.Now()
				c.arrived <- n
			}
		})
	}()
	c.stop = func() error { cancel(); return <-done }
	return c
}

func (c *clocked) await() error {
	select {
	case <-c.arrived:
		return nil
	case <-time.After(20 * time.Second):
		return fmt.Errorf("a job has not started after 20 s")
	}
}

// spread gives the median and the 99th percentile in milliseconds.
func spread(m metrics, name string, times []time.Duration) {
	slices.Sort(times)
	at := func(part float64) float64 {
		return float64(times[min(int(part*float64(len(times))), len(times)-1)]) / float64(time.Millisecond)
	}
	m[name+"p50"], m[name+"p99"] = at(0.5), at(0.99)
}

// measureLatency sends one job at a time to an idle worker.
func measureLatency(ctx context.Context, o *order, q contender) (metrics, error) {
	const warm = 3
	c := startClocked(ctx, q, o.Jobs+warm)
	times := make([]time.Duration, 0, o.Jobs)
	for n := range o.Jobs + warm {
		begin := time.Now()
		if err := q.enqueue(ctx, numbered(n)); err != nil {
			return nil, err
		}
		if err := c.await(); err != nil {
			return nil, err
		}
		if n >= warm {
			times = append(times, c.handled[n].Sub(begin))
		}
		idle()
	}
	if err := c.stop(); err != nil {
		return nil, err
	}
	m := metrics{"jobs": float64(len(times))}
	spread(m, "", times)
	return m, nil
}

// measurePaced sends jobs at a fixed rate, each from a goroutine of its own so that a slow one delays no other.
func measurePaced(ctx context.Context, o *order, q contender) (metrics, error) {
	jobs := int(float64(o.Rate) * o.Seconds)
	c := startClocked(ctx, q, jobs)
	var group sync.WaitGroup
	var failed atomic.Value
	start := time.Now()
	for n := range jobs {
		due := start.Add(time.Duration(n) * time.Second / time.Duration(o.Rate))
		time.Sleep(time.Until(due))
		group.Go(func() {
			c.began[n] = time.Now()
			if err := q.enqueue(ctx, numbered(n)); err != nil {
				failed.Store(err)
			}
		})
	}
	group.Wait()
	if err, _ := failed.Load().(error); err != nil {
		return nil, err
	}
	for range jobs {
		if err := c.await(); err != nil {
			return nil, err
		}
	}
	if err := c.stop(); err != nil {
		return nil, err
	}
	times := make([]time.Duration, jobs)
	for n := range times {
		times[n] = c.handled[n].Sub(c.began[n])
	}
	m := metrics{"jobs": float64(jobs)}
	spread(m, "", times)
	return m, nil
}

// idle pauses until the system has come to rest, in step with nothing.
func idle() { time.Sleep(2*time.Millisecond + rand.N(time.Millisecond)) }

// measureResult asks for the outcomes of jobs, one after another, while other waits are parked.
func measureResult(ctx context.Context, o *order, q contender) (metrics, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	const warm = 3
	c := startClocked(ctx, q, o.Jobs+warm)
	for n := range o.Waiters - 1 {
		if err := q.park(ctx, numbered(1_000_000+n)); err != nil {
			return nil, err
		}
	}
	if o.Waiters > 1 {
		time.Sleep(2 * time.Second) // until all of them wait
	}
	whole, rest := make([]time.Duration, 0, o.Jobs), make([]time.Duration, 0, o.Jobs)
	var meter *meter
	for n := range o.Jobs + warm {
		if n == warm {
			var err error
			if meter, err = startMeter(ctx, o); err != nil {
				return nil, err
			}
		}
		if !o.BackToBack {
			idle()
		}
		begin := time.Now()
		if err := q.ask(ctx, numbered(n)); err != nil {
			return nil, err
		}
		end := time.Now()
		if err := c.await(); err != nil {
			return nil, err
		}
		if n >= warm {
			whole = append(whole, end.Sub(begin))
			rest = append(rest, end.Sub(c.handled[n]))
		}
	}
	m, err := perJob(ctx, meter, o.Jobs)
	if err != nil {
		return nil, err
	}
	spread(m, "", whole)
	spread(m, "return ", rest)
	cancel()
	return m, c.stop()
}

// measureTrips times two bare round trips, to which the latency of a result is compared.
func measureTrips(ctx context.Context, o *order, _ contender) (metrics, error) {
	rdb := redis.NewClient(&redis.Options{Addr: o.Redis[0]})
	defer func() { _ = rdb.Close() }()
	times := make([]time.Duration, 0, o.Jobs)
	for range o.Jobs {
		begin := time.Now()
		for range 2 {
			if err := rdb.Ping(ctx).Err(); err != nil {
				return nil, err
			}
		}
		times = append(times, time.Since(begin))
		idle()
	}
	m := metrics{"jobs": float64(o.Jobs)}
	spread(m, "", times)
	spread(m, "return ", times)
	return m, nil
}

// measureIdle watches a worker that has nothing to do.
func measureIdle(ctx context.Context, o *order, q contender) (metrics, error) {
	c := startClocked(ctx, q, 1)
	if err := q.enqueue(ctx, numbered(0)); err != nil {
		return nil, err
	}
	if err := c.await(); err != nil {
		return nil, err
	}
	time.Sleep(1500 * time.Millisecond)
	sent, err := watchCommands(o.Redis[0])
	if err != nil {
		return nil, err
	}
	meter, err := startMeter(ctx, o)
	if err != nil {
		return nil, err
	}
	before := sent.Load()
	time.Sleep(time.Duration(o.Seconds * float64(time.Second)))
	commands := sent.Load() - before
	m, err := meter.stop(ctx)
	if err != nil {
		return nil, err
	}
	return metrics{
		"jobs": 1, "commands": float64(commands) / m["seconds"], "cpu": m["cpu"] / m["seconds"] * 100, "redis": m["redis"] / m["seconds"] * 100,
	}, c.stop()
}

// watchCommands counts what clients send to a server, without what scripts call.
func watchCommands(addr string) (*atomic.Int64, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Write([]byte("MONITOR\r\n")); err != nil {
		return nil, err
	}
	sent := &atomic.Int64{}
	go func() { // ends with the process
		for lines := bufio.NewScanner(conn); lines.Scan(); {
			if !strings.Contains(lines.Text(), " lua] ") {
				sent.Add(1)
			}
		}
	}()
	return sent, nil
}
