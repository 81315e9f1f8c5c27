package smallage

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"
)

const (
	modelQueue = "q"
	modelTask  = "model.Task"
	modelKey   = "one {key}"
	modelLease = time.Hour // real time plays no part: the model makes leases run out
)

// world is a queue, a dedup key, jobs and workers, driven one step at a time, and what must be true of them.
type world struct {
	rdb    *redis.Client
	wire   *wire
	keys   *keyspace
	k      *queueKeys
	dedup  string
	client *Client
	order  []JobID
	jobs   map[JobID]*modelJob
	active []*modelWorker
	all    []*modelWorker
	now    *dump
	notes  []string

	cancels int
	serial  atomic.Int64 // of runs

	// What the key must say, by what happened and not by what is stored.
	holder JobID // the job between claim and done
	doneBy JobID
}

// modelJob is what is known of a job from outside.
type modelJob struct {
	id        JobID
	dedup     bool
	result    bool
	expires   bool
	succeeded bool // a run of it returned nil
	skipped   bool // justly, as a duplicate
	cancelled bool
	forgotten bool // its outcome was cleared by a replay
	over      bool

	kept  bool   // its outcome is ok
	value string // with this value
}

func newWorld(ns string, rdb *redis.Client, wire *wire) *world {
	keys := newKeyspace(ns)
	client, err := NewClient(rdb, ClientConfig{Namespace: ns})
	if err != nil {
		panic(err)
	}
	wire.reset()
	return &world{
		rdb: rdb, wire: wire, keys: keys, k: keys.queue(modelQueue), dedup: keys.dedup(modelKey), client: client,
		jobs: map[JobID]*modelJob{},
	}
}

func (w *world) note(format string, args ...any) {
	w.notes = append(w.notes, fmt.Sprintf(format, args...))
}

// name is short and the same in every run, unlike a job's id.
func (w *world) name(id JobID) string {
	if i := slices.Index(w.order, id); i >= 0 {
		return "job " + strconv.Itoa(i)
	}
	return "no job"
}

func (w *world) fail(t *rapid.T, format string, args ...any) {
	t.Helper()
	text := strings.Join(w.notes, "\n")
	for i, id := range w.order {
		text = strings.ReplaceAll(text, id.String(), "job "+strconv.Itoa(i))
	}
	t.Fatalf("%s\nafter:\n%s\n%s", fmt.Sprintf(format, args...), text, w.now.queue)
}

// newWorker starts a worker whose every step the model takes itself.
func (w *world) newWorker() *modelWorker {
	m := &modelWorker{world: w, entered: make(chan *modelRun)}
	task := &Task[struct{}]{Name: modelTask, Queue: modelQueue, Attempts: 2, Backoff: time.Hour, BackoffMax: time.Hour}
	table := NewTable(HandleValue(task, func(context.Context, struct{}) ([]byte, error) { return nil, nil }))
	worker, err := NewWorker(w.rdb, WorkerConfig{
		Namespace: w.keys.ns, Name: "w" + strconv.Itoa(len(w.all)), Lease: modelLease, MaxDeliveries: 4,
		Logger: slog.New(slog.DiscardHandler), Middleware: []func(Handler) Handler{m.intercept},
	}, table)
	if err != nil {
		panic(err)
	}
	m.s = newSession(worker, context.Background())
	m.s.reading, m.s.ticking, m.s.block = w.rdb, w.rdb, time.Millisecond
	m.q = m.s.hold.queues[0]
	m.s.hold.waiting = 1 // a runner is always free
	w.active, w.all = append(w.active, m), append(w.all, m)
	return m
}

// look reads the state anew.
func (w *world) look(t *rapid.T) {
	now, err := readDump(context.Background(), w.rdb, w.k, w.dedup, w.order, w.keys)
	if err != nil {
		t.Fatalf("dump: %v", err)
	}
	w.now = now
}

// check holds after every step.
func (w *world) check(t *rapid.T) {
	w.follow()
	w.look(t)
	w.checkKey(t)
	for _, id := range w.order {
		w.checkJob(t, w.jobs[id])
	}
	if w.now.indexes != [2]int64{int64(len(w.now.delayed)), int64(len(w.now.dead))} {
		w.fail(t, "the delayed and dead indexes have %v, the jobs are %d and %d", w.now.indexes, len(w.now.delayed), len(w.now.dead))
	}
	for _, entry := range w.now.verdicts {
		if _, pending := w.now.holders[entry]; !pending {
			w.fail(t, "a verdict stands for entry %s, which nobody holds", entry)
		}
	}
}

func (w *world) checkKey(t *rapid.T) {
	want := ""
	switch {
	case !w.holder.IsZero():
		want = "claimed:" + w.holder.String()
	case !w.doneBy.IsZero():
		want = "done:" + w.doneBy.String()
	}
	if w.now.value != want {
		w.fail(t, "the key holds %q, by what happened it should hold %q", w.now.value, want)
	}
	if w.now.value != "" && w.now.ttl <= 0 {
		w.fail(t, "the key has no TTL")
	}
	if !w.holder.IsZero() {
		if stream, delayed, _ := w.now.places(w.holder); stream+delayed == 0 {
			w.fail(t, "the key is claimed by %s, which is neither waiting nor running", w.name(w.holder))
		}
	}
}

func (w *world) checkJob(t *rapid.T, j *modelJob) {
	stream, delayed, dead := w.now.places(j.id)
	out := w.now.outcomes[j.id]
	switch places := stream + delayed + dead; {
	case places > 1:
		w.fail(t, "%s is in %d places: %d in the stream, %d delayed, %d dead", w.name(j.id), places, stream, delayed, dead)
	case places == 1 && j.over:
		w.fail(t, "%s is back although it had ended", w.name(j.id))
	case places == 0:
		j.over = true
		if !j.succeeded && !j.skipped && !j.cancelled && !j.expires {
			w.fail(t, "%s is lost: it did not succeed, nor was it skipped, cancelled or expired", w.name(j.id))
		}
		if j.result && out.status == "" {
			w.fail(t, "%s ended without an outcome", w.name(j.id))
		}
	case dead == 1 && j.result && !j.forgotten && out.status == "":
		w.fail(t, "%s was buried before its outcome was recorded", w.name(j.id))
	}
	truth := map[Status]bool{
		"": true, StatusOK: j.succeeded, StatusDuplicate: j.skipped, StatusCancelled: j.cancelled, StatusExpired: j.expires, StatusFailed: true,
	}
	if !truth[out.status] {
		w.fail(t, "%s has the outcome %s, which is not what happened", w.name(j.id), out.status)
	}
	if out.status == "" && out.tokenTTL != -2 || out.status != "" && (out.ttl <= 0 || out.tokenTTL <= 0) {
		w.fail(t, "%s: outcome %q with TTL %d, its token has %d", w.name(j.id), out.status, out.ttl, out.tokenTTL)
	}
	if j.kept && (out.status != StatusOK || out.value != j.value) {
		w.fail(t, "%s had the outcome ok with value %q, and now has %q with %q", w.name(j.id), j.value, out.status, out.value)
	}
	if out.status == StatusOK {
		j.kept, j.value = true, out.value
	}
	if out.status != "" && !j.result {
		w.fail(t, "%s has an outcome that nobody asked for", w.name(j.id))
	}
}

// follow updates what the key must say by the scripts that ran.
func (w *world) follow() {
	for _, r := range w.wire.ran {
		job, err := ParseJobID(r.job)
		if err != nil {
			continue
		}
		switch r.sha {
		case doneScript.sha:
			switch {
			case w.holder == job, w.holder.IsZero() && w.doneBy.IsZero():
				w.holder, w.doneBy = JobID{}, job
			}
		case unclaimScript.sha:
			if w.holder == job {
				w.holder = JobID{}
			}
		}
	}
	w.wire.ran = w.wire.ran[:0]
}

// entered checks that a handler may be called now.
func (w *world) entered(t *rapid.T, r *modelRun) {
	id := r.d.env.id
	if holder := w.now.holders[r.d.entry]; holder != r.worker.s.consumer {
		w.fail(t, "%s calls the handler of %s, whose entry %q holds", r.worker.s.consumer, w.name(id), holder)
	}
	if slices.Contains(w.now.verdicts, r.d.entry) {
		w.fail(t, "%s calls the handler of %s, which has ended", r.worker.s.consumer, w.name(id))
	}
	if !w.jobs[id].dedup {
		return
	}
	if !w.doneBy.IsZero() && w.holder.IsZero() {
		w.fail(t, "%s runs within the window of %s", w.name(id), w.name(w.doneBy))
	}
	if !w.holder.IsZero() && w.holder != id {
		w.fail(t, "%s runs while %s holds the key", w.name(id), w.name(w.holder))
	}
	for _, m := range w.active {
		for _, other := range m.runs {
			if other != r && other.guarded && other.d.env.id != id {
				w.fail(t, "%s and %s run at once", w.name(id), w.name(other.d.env.id))
			}
		}
	}
	w.holder, r.guarded = id, true
}

// decided checks what a worker did with an entry without calling its handler.
func (w *world) decided(t *rapid.T, d *delivery, e *ending) {
	j := w.jobs[d.env.id]
	if e == nil || j == nil {
		return
	}
	switch {
	case e.v == nil && e.lost:
		if w.doneBy != j.id {
			w.fail(t, "%s is skipped as done, but it is not", w.name(j.id))
		}
	case e.v != nil && e.status == StatusDuplicate && d.prior == nil:
		owner, _ := ParseJobID(e.v.Owner)
		by := w.holder
		if by.IsZero() {
			by = w.doneBy
		}
		if by.IsZero() || by == j.id || owner != by {
			w.fail(t, "%s is skipped for %s, but the key is %s's", w.name(j.id), w.name(owner), w.name(by))
		}
		j.skipped = true
	case e.v != nil && e.status == StatusCancelled && d.prior == nil && !j.cancelled:
		w.fail(t, "%s is cancelled, but nobody asked for it", w.name(j.id))
	}
}
