package main

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"github.com/google/uuid"
)

// order is one measurement, carried out by a process of its own so that its CPU time and memory are its alone.
type order struct {
	Scenario  string
	Contender string
	Redis     []string // addresses; several are a cluster
	Postgres  string   // DSN

	Jobs        int
	Backlog     int      // jobs that wait behind those
	Callers     int      // goroutines that enqueue
	Concurrency int      // handlers at once
	Queues      []string // that the jobs go to in turn; none: one queue
	Rate        int      // jobs per second
	Waiters     int
	BackToBack  bool // the next job follows at once; else the system is idle in between
	Seconds     float64
	Features    features
	Profile     string // file for a CPU profile of the measured part
}

// features are what a job or a worker does beyond the least.
type features struct {
	Dedup, Result, Timeout, Heartbeat, Middleware, Counters, Telemetry, Cluster bool
}

// metrics are what a measurement found, by name.
type metrics map[string]float64

// contender is one queue under test. Each is used with its defaults but for the number of handlers.
type contender interface {
	// open connects; reset removes what earlier measurements left outside of Redis.
	open(ctx context.Context, o *order) error
	reset(ctx context.Context) error
	close()

	// enqueue sends one job and returns once it is accepted.
	enqueue(ctx context.Context, id uuid.UUID) error

	// batch sends many jobs in whatever bulk form there is.
	batch(ctx context.Context, ids []uuid.UUID) error

	// work runs jobs until ctx ends and everything in hand is ended.
	work(ctx context.Context, handle func(uuid.UUID)) error

	// ask sends one job and returns once its outcome was seen.
	ask(ctx context.Context, id uuid.UUID) error

	// park begins a wait for a job that does not end while the measurement lasts, and returns once it waits.
	park(ctx context.Context, id uuid.UUID) error
}

var errUnsupported = errors.New("this contender has no such thing")

// numbered makes the 16 bytes that every job carries: its number, and nothing that compresses well.
func numbered(n int) uuid.UUID {
	var id uuid.UUID
	binary.BigEndian.PutUint64(id[:8], uint64(n)*0x9E3779B97F4A7C15)
	binary.BigEndian.PutUint64(id[8:], uint64(n))
	return id
}

func number(id uuid.UUID) int { return int(binary.BigEndian.Uint64(id[8:])) }

const (
	queueName = "bench"
	resultTTL = 10 * time.Minute
	dedupTTL  = 10 * time.Minute
)

func newContender(name string) contender {
	switch name {
	case "ideal", "XADD":
		return &idealQueue{}
	case "XADD, whole job":
		return &wholeQueue{}
	case "rueidis":
		return &rueidisQueue{}
	case "asynq":
		return &asynqQueue{}
	case "river":
		return &riverQueue{}
	case "smallage":
		return &smallageQueue{}
	}
	return nil
}
