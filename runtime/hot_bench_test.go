package smallage

import (
	"context"
	"encoding/json"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/smallage/smallage/internal/redistest"
)

type benchArgs struct {
	DocID uuid.UUID `json:"docID"`
}

var benchTask = Task[benchArgs]{Name: "bench.Noop", Queue: "bench"}

// benchReply is what a read of n jobs of benchTask brings.
func benchReply(tb testing.TB, n int) []byte {
	tb.Helper()
	var entries []entry
	for i := range n {
		id, err := NewJobID()
		if err != nil {
			tb.Fatal(err)
		}
		args, err := encodeArgs(benchTask.Name, benchArgs{uuid.New()})
		if err != nil {
			tb.Fatal(err)
		}
		job := &Job{ID: id, Task: benchTask.Name, Args: args}
		e := entry{id: []byte("1764600000000-" + strconv.Itoa(i)), fields: entryOf(tb, job, time.Now().UnixMilli())}
		entries = append(entries, e)
	}
	return []byte(readReply(false, entries))
}

// benchSession is a session that talks to no server.
func benchSession(tb testing.TB, handler func(context.Context, benchArgs) error) *session {
	tb.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	tb.Cleanup(func() { _ = rdb.Close() })
	w, err := NewWorker(rdb, WorkerConfig{Concurrency: 50}, NewTable(Handle(&benchTask, handler)))
	if err != nil {
		tb.Fatal(err)
	}
	return newSession(w, context.Background())
}

// runReply takes the entries of a reply from the client's hands to their handlers, as a reader and a runner do.
func (s *session) runReply(reply []byte) {
	q := s.hold.queues[0]
	r := s.newRead(q, 0, -1, false)
	_, _ = r.buffer.reply.Write(reply)
	n, _ := s.received(r)
	list := make([]*delivery, 0, n)
	for range n {
		d := s.hold.next()
		list = append(list, d)
		s.process(d)
	}
	s.endings.waiting, s.endings.open = nil, 0
	s.hold.drop(list...)
}

func BenchmarkEntryToHandler(b *testing.B) {
	s := benchSession(b, func(context.Context, benchArgs) error { return nil })
	const batch = 50
	reply := benchReply(b, batch)
	b.ReportAllocs()
	for i := 0; i < b.N; i += batch {
		s.runReply(reply)
	}
}

// The figure that the project has set itself: from the entry as the Redis client has parsed it to the handler called, for
// a task with one UUID.
func TestFewAllocationsLieBetweenAnEntryAndItsHandler(t *testing.T) {
	ran := 0
	s := benchSession(t, func(context.Context, benchArgs) error { ran++; return nil })
	const batch = 50
	reply := benchReply(t, batch)
	allocs := testing.AllocsPerRun(20, func() { s.runReply(reply) }) / batch
	if ran < batch {
		t.Fatalf("%d handlers were called", ran)
	}
	if allocs > 12 {
		t.Fatalf("%.1f allocations for each job, want 12 at most", allocs)
	}
	t.Logf("%.2f allocations for each job", allocs)
}

func BenchmarkParseRead(b *testing.B) {
	reply := benchReply(b, 50)
	var buffer readBuffer
	b.SetBytes(int64(len(reply)))
	b.ReportAllocs()
	for b.Loop() {
		_, _, _ = buffer.parse(reply)
	}
}

func BenchmarkDecodeArgs(b *testing.B) {
	shape := newArgsShape(reflect.TypeFor[benchArgs](), nil)
	data, err := json.Marshal(benchArgs{uuid.New()})
	if err != nil {
		b.Fatal(err)
	}
	for name, plain := range map[string]bool{"plain": true, "encoding-json": false} {
		b.Run(name, func(b *testing.B) {
			shape := shape
			shape.plain = plain
			b.ReportAllocs()
			var args benchArgs
			for b.Loop() {
				if err := shape.decode(data, &args); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkEncodeArgs(b *testing.B) {
	args := benchArgs{uuid.New()}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := encodeArgs(benchTask.Name, args); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNewJobID(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := NewJobID(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDedupKey(b *testing.B) {
	k := newKeyspace("smallage")
	b.ReportAllocs()
	for b.Loop() {
		_ = k.dedup("charge:0190b0c2-7f5e-7cc1-a2c4-0d4f6a1b2c3d")
	}
}

func benchClient(b *testing.B) *Client {
	b.Helper()
	client, err := NewClient(redistest.Start(b).Client(), ClientConfig{})
	if err != nil {
		b.Fatal(err)
	}
	return client
}

func BenchmarkEnqueue(b *testing.B) {
	client, ctx := benchClient(b), context.Background()
	args := benchArgs{uuid.New()}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := benchTask.Enqueue(ctx, client, args, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEnqueueFrom64(b *testing.B) {
	client, ctx := benchClient(b), context.Background()
	args := benchArgs{uuid.New()}
	b.SetParallelism(32)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := benchTask.Enqueue(ctx, client, args, nil); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func BenchmarkEnqueueBatch(b *testing.B) {
	client, ctx := benchClient(b), context.Background()
	args := benchArgs{uuid.New()}
	const size = 500
	b.ReportAllocs()
	for i := 0; i < b.N; i += size {
		var batch Batch
		for range size {
			if _, err := benchTask.Enqueue(ctx, &batch, args, nil); err != nil {
				b.Fatal(err)
			}
		}
		if err := client.EnqueueBatch(ctx, &batch); err != nil {
			b.Fatal(err)
		}
	}
}
