package main

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

var scenarios = map[string]func(context.Context, *order, contender) (metrics, error){
	"reset":   reset,
	"fill":    fill,
	"enqueue": measureEnqueue,
	"batch":   measureBatch,
	"drain":   measureDrain,
	"latency": measureLatency,
	"paced":   measurePaced,
	"result":  measureResult,
	"trips":   measureTrips,
	"idle":    measureIdle,
}

func reset(ctx context.Context, _ *order, q contender) (metrics, error) {
	return metrics{}, q.reset(ctx)
}

const batchSize = 500

// fill enqueues jobs as fast as may be; nothing is measured but the memory that they take.
func fill(ctx context.Context, o *order, q contender) (metrics, error) {
	before, err := usedMemory(ctx, o)
	if err != nil {
		return nil, err
	}
	send := func(first, last int) error {
		ids := make([]uuid.UUID, 0, last-first)
		for n := first; n < last; n++ {
			ids = append(ids, numbered(n))
		}
		return q.batch(ctx, ids)
	}
	jobs := o.Jobs + o.Backlog
	err = send(0, min(jobs, batchSize))
	if err == errUnsupported {
		err = inParallel(64, jobs, func(n int) error { return q.enqueue(ctx, numbered(n)) })
	} else {
		for n := batchSize; n < jobs && err == nil; n += batchSize {
			err = send(n, min(n+batchSize, jobs))
		}
	}
	if err != nil {
		return nil, err
	}
	after, err := usedMemory(ctx, o)
	if err != nil {
		return nil, err
	}
	return metrics{"jobs": float64(jobs), "bytes": (after - before) / float64(jobs)}, nil
}

func usedMemory(ctx context.Context, o *order) (float64, error) {
	var sum float64
	for _, addr := range o.Redis {
		rdb := redis.NewClient(&redis.Options{Addr: addr})
		info := rdb.InfoMap(ctx, "memory")
		if err := info.Err(); err != nil {
			return 0, err
		}
		var used float64
		if _, err := fmt.Sscan(info.Item("Memory", "used_memory"), &used); err != nil {
			return 0, err
		}
		sum += used
		_ = rdb.Close()
	}
	return sum, nil
}

// inParallel calls do for every number below n, from some goroutines.
func inParallel(goroutines, n int, do func(int) error) error {
	var next atomic.Int64
	var group sync.WaitGroup
	var mu sync.Mutex
	var failed error
	for range goroutines {
		group.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := do(i); err != nil {
					mu.Lock()
					failed = err
					mu.Unlock()
					return
				}
			}
		})
	}
	group.Wait()
	return failed
}

func measureEnqueue(ctx context.Context, o *order, q contender) (metrics, error) {
	// The first calls open connections and learn scripts.
	if err := inParallel(o.Callers, 2*o.Callers, func(n int) error { return q.enqueue(ctx, numbered(o.Jobs+n)) }); err != nil {
		return nil, err
	}
	meter, err := startMeter(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := inParallel(o.Callers, o.Jobs, func(n int) error { return q.enqueue(ctx, numbered(n)) }); err != nil {
		return nil, err
	}
	return perJob(ctx, meter, o.Jobs)
}

func measureBatch(ctx context.Context, o *order, q contender) (metrics, error) {
	ids := make([]uuid.UUID, batchSize)
	for i := range ids {
		ids[i] = numbered(i)
	}
	if err := q.batch(ctx, ids); err != nil {
		return nil, err
	}
	meter, err := startMeter(ctx, o)
	if err != nil {
		return nil, err
	}
	for n := 0; n < o.Jobs; n += batchSize {
		for i := range ids {
			ids[i] = numbered(n + i)
		}
		if err := q.batch(ctx, ids); err != nil {
			return nil, err
		}
	}
	return perJob(ctx, meter, o.Jobs)
}

// perJob turns what a meter saw into figures for each job: jobs per second, CPU seconds per 100,000 jobs, commands.
func perJob(ctx context.Context, meter *meter, jobs int) (metrics, error) {
	m, err := meter.stop(ctx)
	if err != nil {
		return nil, err
	}
	n := float64(jobs)
	return metrics{
		"jobs": n, "rate": n / m["seconds"], "cpu": m["cpu"] / n * 1e5, "redis": m["redis"] / n * 1e5,
		"both": (m["cpu"] + m["redis"]) / n * 1e5, "commands": m["commands"] / n, "reads": m["reads"] / n, "arrivals": m["arrivals"] / n,
	}, nil
}

// measureDrain works off jobs that fill has enqueued. The rate ends with the last handler, CPU and commands with the last
// ending: the worker has stopped by then.
func measureDrain(ctx context.Context, o *order, q contender) (metrics, error) {
	var ran, peak atomic.Int64
	half, finished := make(chan struct{}), make(chan time.Time, 1)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	meter, err := startMeter(context.WithoutCancel(ctx), o)
	if err != nil {
		return nil, err
	}
	done := make(chan error, 1)
	seen := make([]atomic.Bool, o.Jobs+o.Backlog)
	var twice atomic.Int64
	go func() {
		done <- q.work(ctx, func(id uuid.UUID) {
			if seen[number(id)].Swap(true) {
				twice.Add(1)
				return
			}
			switch n := ran.Add(1); {
			case n == int64(o.Jobs/2):
				peak.Store(int64(residentBytes()))
				close(half)
			case n == int64(o.Jobs):
				finished <- time.Now()
			}
		})
	}()
	connected := make(chan metrics, 1)
	if len(o.Queues) > 0 {
		go func() {
			<-half
			m := metrics{}
			if n, err := meter.connections(context.WithoutCancel(ctx)); err == nil {
				m["connections"] = n
			}
			connected <- m
		}()
	} else {
		connected <- nil
	}
	var last time.Time
	select {
	case last = <-finished:
	case err := <-done:
		return nil, fmt.Errorf("the worker stopped after %d of %d jobs: %v", ran.Load(), o.Jobs, err)
	case <-time.After(3 * time.Minute):
		return nil, fmt.Errorf("after three minutes only %d of %d jobs had run", ran.Load(), o.Jobs)
	}
	took, connections := last.Sub(meter.began), <-connected
	stop()
	if err := <-done; err != nil {
		return nil, err
	}
	if n := twice.Load(); n > 0 {
		return nil, fmt.Errorf("%d of %d jobs ran twice", n, o.Jobs)
	}
	m, err := perJob(context.WithoutCancel(ctx), meter, int(ran.Load())) // with a backlog, some more have run by now
	if err != nil {
		return nil, err
	}
	m["rate"] = float64(o.Jobs) / took.Seconds()
	m["rss"] = float64(peak.Load())
	maps.Copy(m, connections)
	return m, nil
}
