package crashtest_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/smallage/smallage/internal/crashtest"
	"github.com/smallage/smallage/internal/redistest"
	smallage "github.com/smallage/smallage/runtime"
)

// scene is a namespace with its ledgers, and what was enqueued there.
type scene struct {
	t       *testing.T
	rdb     *redis.Client
	ns      string
	setup   crashtest.Setup
	client  *smallage.Client
	load    *crashtest.Load
	witness *crashtest.Witness
}

func newScene(t *testing.T, server *redistest.Server) *scene {
	t.Helper()
	rdb := server.Client()
	ns, ledger := redistest.Namespace(t), t.TempDir()
	client, err := smallage.NewClient(rdb, smallage.ClientConfig{Namespace: ns, MaxWaitConns: 64})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return &scene{
		t: t, rdb: rdb, ns: ns, client: client,
		setup: crashtest.Setup{
			Addr: server.Addr(), Namespace: ns, Ledger: ledger, Concurrency: 4, Lease: time.Second, MaxDeliveries: 100,
			DrainTimeout: 20 * time.Second,
		},
		load:    crashtest.NewLoad(client, 60*time.Second),
		witness: crashtest.NewWitness(rdb, ns, ledger),
	}
}

func (s *scene) enqueue(specs ...crashtest.Spec) {
	s.t.Helper()
	for _, spec := range specs {
		require.NoError(s.t, s.load.Enqueue(context.Background(), spec))
	}
}

// worker starts a process. When it is killed the witness looks at once, before another can take over what it held.
func (s *scene) worker(env ...string) *crashtest.Worker {
	s.t.Helper()
	w := crashtest.StartWorker(s.t, s.setup, env...)
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		<-w.Ended()
		time.Sleep(20 * time.Millisecond) // what it sent last reaches the server
		for s.t.Context().Err() == nil && s.witness.Killed(w.PID) != nil {
			time.Sleep(20 * time.Millisecond) // Redis may be away as well
		}
	}()
	s.t.Cleanup(func() {
		w.Kill()
		<-looked
	})
	return w
}

func (s *scene) key(kind string) string { return s.ns + ":{q:" + crashtest.Queue + "}:" + kind }

// records returns what the workers wrote down of one kind.
func (s *scene) records(what string) []crashtest.Record {
	s.t.Helper()
	all, err := crashtest.ReadLedgers(s.setup.Ledger)
	require.NoError(s.t, err)
	var found []crashtest.Record
	for _, r := range all {
		if r.What == what {
			found = append(found, r)
		}
	}
	return found
}

// atRest reports whether nothing is in the stream, on its way or delayed.
func (s *scene) atRest() bool {
	ctx := context.Background()
	n, err := s.rdb.XLen(ctx, s.key("stream")).Result()
	if err != nil || n > 0 {
		return false
	}
	delayed, err := s.rdb.ZCard(ctx, s.key("delayed")).Result()
	if err != nil || delayed > 0 {
		return false
	}
	pending, err := s.rdb.XPending(ctx, s.key("stream"), "workers").Result()
	return err == nil && pending.Count == 0
}

// settle waits until all jobs have ended, and requires that every one ended as it must.
func (s *scene) settle(limit time.Duration) *crashtest.Findings {
	s.t.Helper()
	require.Eventually(s.t, s.atRest, limit, 20*time.Millisecond, "the queue does not come to rest")
	jobs := s.load.Jobs()
	require.Eventually(s.t, s.atRest, limit, 20*time.Millisecond, "the queue does not stay at rest")
	found, err := crashtest.Verify(s.rdb, s.ns, jobs, s.witness)
	require.NoError(s.t, err)
	for _, problem := range found.Problems {
		s.t.Error(problem)
	}
	s.t.Logf("%d jobs: %d side effects, %d of them again through the documented gap; %d dead, %d duplicates",
		len(jobs), found.Effects, found.Repeated, found.Dead, found.Skipped)
	return found
}
