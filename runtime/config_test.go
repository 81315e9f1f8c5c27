package smallage_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	smallage "github.com/smallage/smallage/runtime"
)

func okTable(name string, aliases ...string) smallage.Table {
	return smallage.NewTable(smallage.Handle(&smallage.Task[textArgs]{Name: name, Aliases: aliases},
		func(context.Context, textArgs) error { return nil }))
}

func TestNewWorkerRefusesWhatCannotWorkAndSaysWhatToDo(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	t.Cleanup(func() { _ = rdb.Close() })
	var nilGateway *strings.Builder
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}})
	t.Cleanup(func() { _ = ring.Close() })
	for name, c := range map[string]struct {
		rdb    redis.UniversalClient
		cfg    smallage.WorkerConfig
		tables []smallage.Table
		want   []string
	}{
		"no client":          {nil, smallage.WorkerConfig{}, []smallage.Table{okTable("a")}, []string{"Redis client: it is nil; pass redis.NewClient"}},
		"typed nil client":   {(*redis.Client)(nil), smallage.WorkerConfig{}, []smallage.Table{okTable("a")}, []string{"Redis client: it is nil"}},
		"ring":               {ring, smallage.WorkerConfig{}, []smallage.Table{okTable("a")}, []string{"Redis client: it is a redis.Ring"}},
		"no table":           {rdb, smallage.WorkerConfig{}, nil, []string{"tables: there is none; pass what a generated Dispatch returns"}},
		"empty table":        {rdb, smallage.WorkerConfig{}, []smallage.Table{{}}, []string{"table 1: it has no task"}},
		"zero entry":         {rdb, smallage.WorkerConfig{}, []smallage.Table{smallage.NewTable(smallage.Entry{})}, []string{"table 1: an entry without a task"}},
		"nil dependency":     {rdb, smallage.WorkerConfig{}, []smallage.Table{okTable("a").Needs("gateway", nilGateway)}, []string{"dependency gateway of table 1: it is nil"}},
		"one name twice":     {rdb, smallage.WorkerConfig{}, []smallage.Table{okTable("a"), okTable("a")}, []string{`task name "a": claimed by a and by a`}},
		"alias and name":     {rdb, smallage.WorkerConfig{}, []smallage.Table{okTable("a"), okTable("b", "a")}, []string{`task name "a": claimed by a and by b`}},
		"queue name":         {rdb, smallage.WorkerConfig{Queues: map[string]int{"a b": 1}}, []smallage.Table{okTable("a")}, []string{`queue name "a b": use letters`}},
		"no queues":          {rdb, smallage.WorkerConfig{Queues: map[string]int{}}, []smallage.Table{okTable("a")}, []string{"Queues: the map is empty"}},
		"weight":             {rdb, smallage.WorkerConfig{Queues: map[string]int{"q": 0}}, []smallage.Table{okTable("a")}, []string{`weight 0 of queue "q": use 1 or more`}},
		"lease":              {rdb, smallage.WorkerConfig{Lease: time.Millisecond}, []smallage.Table{okTable("a")}, []string{"Lease 1ms: a worker must be able to renew it three times", "use at least 300ms"}},
		"negative values":    {rdb, smallage.WorkerConfig{Concurrency: -1, DedupTTL: -time.Second, DrainTimeout: -1}, []smallage.Table{okTable("a")}, []string{"Concurrency -1: it is negative; leave it 0 for 10", "DedupTTL -1s", "DrainTimeout -1ns"}},
		"namespace":          {rdb, smallage.WorkerConfig{Namespace: "a{b}"}, []smallage.Table{okTable("a")}, []string{`Namespace "a{b}"`}},
		"worker name":        {rdb, smallage.WorkerConfig{Name: "a b"}, []smallage.Table{okTable("a")}, []string{`Name "a b"`}},
		"everything at once": {nil, smallage.WorkerConfig{Lease: -1}, nil, []string{"Redis client", "Lease -1ns", "tables"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := smallage.NewWorker(c.rdb, c.cfg, c.tables...)
			require.ErrorIs(t, err, smallage.ErrInvalid)
			for _, want := range c.want {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

func TestNewClientRefusesWhatCannotWorkAndSaysWhatToDo(t *testing.T) {
	t.Parallel()
	_, err := smallage.NewClient(nil, smallage.ClientConfig{Namespace: "no braces {}", MaxArgsBytes: -1})
	require.ErrorIs(t, err, smallage.ErrInvalid)
	require.ErrorContains(t, err, "Redis client: it is nil; pass redis.NewClient")
	require.ErrorContains(t, err, `Namespace "no braces {}"`)
	require.ErrorContains(t, err, "MaxArgsBytes -1: it is negative; leave it 0 for 1048576")
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}})
	t.Cleanup(func() { _ = ring.Close() })
	_, err = smallage.NewClient(ring, smallage.ClientConfig{})
	require.ErrorIs(t, err, smallage.ErrInvalid)
	require.ErrorContains(t, err, "Redis client: it is a redis.Ring")
}

// TestEnqueueRefusesBadOptions asks the client and the collecting enqueuer the same, since a unit test must find what
// production would.
func TestEnqueueRefusesBadOptions(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	with := echoWith
	for name, c := range map[string]struct {
		opts []smallage.Option[textArgs]
		want string
	}{
		"empty dedup key":     {[]smallage.Option[textArgs]{with.Dedup("")}, "dedup key of task test.Echo: it is empty"},
		"long dedup key":      {[]smallage.Option[textArgs]{with.Dedup(strings.Repeat("x", 4097))}, "dedup key of 4097 bytes"},
		"dedup and no dedup":  {[]smallage.Option[textArgs]{with.Dedup("a"), with.NoDedup()}, "Dedup and NoDedup exclude each other"},
		"negative result TTL": {[]smallage.Option[textArgs]{with.ResultTTL(-time.Second)}, "ResultTTL -1s for task test.Echo: use at least 1ms"},
		"tiny result TTL":     {[]smallage.Option[textArgs]{with.ResultTTL(time.Microsecond)}, "ResultTTL 1µs"},
		"negative expiry":     {[]smallage.Option[textArgs]{with.ExpiresIn(-1)}, "ExpiresIn -1ns"},
		"delay and time":      {[]smallage.Option[textArgs]{with.Delay(time.Second), with.At(time.Now())}, "Delay and At exclude each other"},
		"zero time":           {[]smallage.Option[textArgs]{with.At(time.Time{})}, "it is the zero time"},
		"queue name":          {[]smallage.Option[textArgs]{with.Queue("a:b")}, `queue name "a:b" for task test.Echo`},
		"empty queue name":    {[]smallage.Option[textArgs]{with.Queue("")}, `queue name ""`},
		"zero id":             {[]smallage.Option[textArgs]{with.ID(smallage.JobID{})}, "it is the zero JobID"},
		"empty header":        {[]smallage.Option[textArgs]{with.Header("", "x")}, "its key is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, q := range []smallage.Enqueuer{b.client, &smallage.CollectingEnqueuer{}} {
				id, err := echo.Enqueue(context.Background(), q, textArgs{"x"}, c.opts)
				require.ErrorIs(t, err, smallage.ErrInvalid)
				require.ErrorContains(t, err, c.want)
				require.True(t, id.IsZero())
			}
		})
	}
	require.EqualValues(t, 0, b.rdb.Exists(context.Background(), b.key("echo", "stream")).Val(), "nothing was enqueued")
}

func TestALaterOptionOfAKindWins(t *testing.T) {
	t.Parallel()
	var q smallage.CollectingEnqueuer
	_, err := echo.Enqueue(context.Background(), &q, textArgs{"x"}, []smallage.Option[textArgs]{
		echoWith.ResultTTL(time.Second), echoWith.Dedup("a"), echoWith.Queue("one"),
		echoWith.ResultTTL(time.Minute), echoWith.Dedup("b"), echoWith.Queue("two"), echoWith.Header("k", "v"), echoWith.Header("k", "w"),
	})
	require.NoError(t, err)
	job := q.Jobs()[0]
	require.Equal(t, time.Minute, job.ResultTTL)
	require.Equal(t, "b", job.Dedup)
	require.Equal(t, "two", job.Queue)
	require.Equal(t, map[string]string{"k": "w"}, job.Headers)
	args, err := smallage.DecodeArgs[textArgs](job)
	require.NoError(t, err)
	require.Equal(t, "x", args.Text)

	type otherArgs struct {
		Number int `json:"number"`
	}
	_, err = smallage.DecodeArgs[otherArgs](job)
	require.ErrorIs(t, err, smallage.ErrInvalid)
	require.ErrorContains(t, err, `argument "number" is missing`)
}

func TestEnqueueRefusesNilAndOversized(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	for _, q := range []smallage.Enqueuer{nil, (*smallage.Client)(nil), (*smallage.CollectingEnqueuer)(nil)} {
		_, err := echo.Enqueue(ctx, q, textArgs{"x"}, nil)
		require.ErrorIs(t, err, smallage.ErrInvalid)
		require.ErrorContains(t, err, "pass a *smallage.Client")
	}
	for _, q := range []smallage.Enqueuer{b.client, &smallage.CollectingEnqueuer{}} {
		_, err := echo.Enqueue(ctx, q, textArgs{strings.Repeat("x", 1<<20)}, nil)
		require.ErrorIs(t, err, smallage.ErrTooLarge)
		require.ErrorContains(t, err, "ClientConfig.MaxArgsBytes allows 1048576")
		_, err = q.Enqueue(ctx, smallage.Job{Task: "t", Queue: "q", Args: json.RawMessage(`[1]`)})
		require.ErrorIs(t, err, smallage.ErrInvalid)
	}
	_, err := (*smallage.Client)(nil).Enqueue(ctx, smallage.Job{})
	require.ErrorIs(t, err, smallage.ErrInvalid)
}

func TestEnqueueWithoutRedisSaysThatNothingWasSent(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1, DialerRetries: 1})
	t.Cleanup(func() { _ = rdb.Close() })
	client, err := smallage.NewClient(rdb, smallage.ClientConfig{})
	require.NoError(t, err)
	id, err := echo.Enqueue(context.Background(), client, textArgs{"x"}, nil)
	require.Error(t, err)
	require.NotErrorIs(t, err, smallage.ErrUnconfirmed)
	require.ErrorContains(t, err, "nothing was sent; is Redis running and reachable?")
	require.True(t, id.IsZero())
	_, err = client.Result(context.Background(), mustID(t))
	require.ErrorContains(t, err, "look up the result")
}

func mustID(t *testing.T) smallage.JobID {
	t.Helper()
	id, err := smallage.NewJobID()
	require.NoError(t, err)
	return id
}

func TestAWorkerRunsOnlyOnceAtATime(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w, err := smallage.NewWorker(b.rdb, smallage.WorkerConfig{Namespace: b.ns}, okTable("a"))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	first := make(chan error, 1)
	go func() { first <- w.Run(ctx) }()
	eventually(t, func() bool { return b.rdb.Exists(ctx, b.key("default", "workers")).Val() == 1 }, "it runs")
	require.ErrorIs(t, w.Run(ctx), smallage.ErrInvalid)
	cancel()
	require.NoError(t, <-first)
	require.ErrorIs(t, (*smallage.Worker)(nil).Run(ctx), smallage.ErrInvalid)
}
