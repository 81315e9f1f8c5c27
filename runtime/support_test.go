package smallage_test

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/smallage/smallage/internal/redistest"
	smallage "github.com/smallage/smallage/runtime"
)

// bench is what most tests need: a server, a namespace of the test's own, a client, and workers on demand.
type bench struct {
	t      *testing.T
	rdb    redis.UniversalClient
	ns     string
	client *smallage.Client
	log    *logBuffer
	events *events
}

func newBench(t *testing.T) *bench {
	t.Helper()
	return newBenchOn(t, redistest.Shared(t).Client())
}

func newBenchOn(t *testing.T, rdb redis.UniversalClient) *bench {
	t.Helper()
	ns := redistest.Namespace(t)
	client, err := smallage.NewClient(rdb, smallage.ClientConfig{Namespace: ns})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return &bench{t: t, rdb: rdb, ns: ns, client: client, log: &logBuffer{}, events: &events{}}
}

// work runs a worker until the test ends or stop is called; stop waits for Run to return.
func (b *bench) work(cfg smallage.WorkerConfig, tables ...smallage.Table) (stop func()) {
	b.t.Helper()
	cfg.Namespace = b.ns
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(b.log, nil))
	}
	if cfg.Observer == nil {
		cfg.Observer = b.events
	}
	w, err := smallage.NewWorker(b.rdb, cfg, tables...)
	require.NoError(b.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			select {
			case err := <-done:
				require.NoError(b.t, err)
			case <-time.After(45 * time.Second):
				b.t.Error("Run did not return after its context ended")
			}
		})
	}
	b.t.Cleanup(stop)
	return stop
}

// key names a key of a queue.
func (b *bench) key(queue, kind string) string { return b.ns + ":{q:" + queue + "}:" + kind }

// eventually awaits a condition with a generous bound.
func eventually(t *testing.T, condition func() bool, what string, args ...any) {
	t.Helper()
	require.Eventuallyf(t, condition, 20*time.Second, 5*time.Millisecond, what, args...)
}

type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

type events struct {
	mu   sync.Mutex
	list []smallage.Event
}

func (e *events) Observe(event smallage.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, event)
}

// of lists the events of one kind, of one job where it is not zero.
func (e *events) of(kind smallage.EventKind, id smallage.JobID) []smallage.Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	var found []smallage.Event
	for _, event := range e.list {
		if event.Kind == kind && (id.IsZero() || event.Job.ID == id) {
			found = append(found, event)
		}
	}
	return found
}

func (b *bench) logger() *slog.Logger { return slog.New(slog.NewTextHandler(b.log, nil)) }
