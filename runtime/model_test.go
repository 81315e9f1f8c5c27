package smallage

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/smallage/smallage/internal/redistest"
)

// modelHundreds is how many hundreds of interleavings a plain test run tries; MODEL_HUNDREDS sets another number.
const modelHundreds = 20

func TestEveryInterleavingOfJobsOnOneKeyKeepsTheProtocol(t *testing.T) {
	t.Parallel()
	hundreds := modelHundreds
	if s := os.Getenv("MODEL_HUNDREDS"); s != "" {
		var err error
		hundreds, err = strconv.Atoi(s)
		require.NoError(t, err, "MODEL_HUNDREDS")
	}
	rdb, wire := redistest.Shared(t).Client(), &wire{}
	rdb.AddHook(wire)
	begin, runs, steps, counts := time.Now(), 0, 0, map[string]int{}
	for range hundreds { // Check makes a hundred, each hundred from a new seed
		rapid.Check(t, func(rt *rapid.T) {
			w := newWorld(redistest.Namespace(t), rdb, wire)
			defer w.close()
			w.check(rt)
			for range rapid.IntRange(15, 70).Draw(rt, "steps") {
				a := w.choose(rt)
				wire.twice, wire.lose, wire.loseRead = false, false, false
				a.do(rt)
				w.check(rt)
				steps++
				counts[a.name]++
			}
			w.settle(rt)
			runs++
		})
	}
	t.Logf("%d interleavings, %d steps in %v: %v, %d flushes read on", runs, steps, time.Since(begin).Round(time.Millisecond), counts, wire.reads)
	require.NotZero(t, wire.reads)
	for _, a := range new(world).actions() {
		require.NotZero(t, counts[a.name], "no interleaving contains: %s", a.name)
	}
}

func (w *world) close() {
	for _, m := range w.all {
		m.bury()
	}
	keys := []string{
		w.k.stream, w.k.delayed, w.k.delayedJobs, w.k.dead, w.k.deadJobs, w.k.deadIDs, w.k.verdict, w.k.cancel, w.k.workers,
		w.k.pass, w.k.sweep, w.keys.registry(), w.dedup,
	}
	for _, id := range w.order {
		result, token, _ := w.keys.outcome(id)
		keys = append(keys, result, token)
	}
	w.rdb.Unlink(context.Background(), keys...)
	_ = w.client.Close()
}

// pick chooses one.
func pick[T any](t *rapid.T, list []T, label string) T {
	return list[rapid.IntRange(0, len(list)-1).Draw(t, label)]
}

// where lists the workers that something can be done with.
func (w *world) where(can func(*modelWorker) bool) []*modelWorker {
	return slices.DeleteFunc(slices.Clone(w.active), func(m *modelWorker) bool { return !can(m) })
}

func anyWorker(*modelWorker) bool      { return true }
func isRunning(m *modelWorker) bool    { return len(m.runs) > 0 }
func hasEndings(m *modelWorker) bool   { return len(m.s.endings.waiting) > 0 }
func hasUnstarted(m *modelWorker) bool { return len(m.q.pending) > 0 }
func hasRoom(m *modelWorker) bool      { return m.s.hold.room(m.q, m.s.hold.free()) > 0 }

// action is a step that may be taken, the more often the higher its weight.
type action struct {
	name   string
	weight int
	can    func() bool
	do     func(*rapid.T)
}

// choose draws one of the steps that are possible now.
func (w *world) choose(t *rapid.T) action {
	possible := map[string]action{}
	var names []string
	for _, a := range w.actions() {
		if a.can() {
			possible[a.name] = a
			names = append(names, slices.Repeat([]string{a.name}, a.weight)...)
		}
	}
	return possible[rapid.SampledFrom(names).Draw(t, "step")]
}

func (w *world) actions() []action {
	some := func(can func(*modelWorker) bool) func() bool {
		return func() bool { return slices.ContainsFunc(w.active, can) }
	}
	return []action{
		{"enqueue", 6, func() bool { return len(w.order) < 5 }, w.enqueue},
		{"worker", 8, func() bool { return len(w.active) < 2+len(w.all)%2 }, w.come},
		{"read", 10, func() bool { return len(w.now.entries) > len(w.now.holders) && some(hasRoom)() }, w.read},
		{"tick", 5, some(anyWorker), w.tick},
		{"start", 20, some(hasUnstarted), w.start},
		{"succeed", 5, some(isRunning), func(t *rapid.T) { w.finish(t, nil) }},
		{"fail", 8, some(isRunning), func(t *rapid.T) { w.finish(t, errors.New("failed")) }},
		{"bury", 3, some(isRunning), func(t *rapid.T) { w.finish(t, Bury(errors.New("hopeless"))) }},
		{"flush", 24, some(hasEndings), w.flush},
		{"crash", 1, some(anyWorker), w.crash},
		{"leave", 1, some(anyWorker), w.leave},
		{"lease runs out", 4, func() bool { return len(w.held()) > 0 }, w.expireOne},
		{"renew", 2, some(anyWorker), w.renew},
		{"delay passes", 8, func() bool { return len(w.now.delayed) > 0 }, w.promote},
		{"window ends", 1, func() bool { return w.now.value != "" }, w.release},
		{"cancel", 1, func() bool { return len(w.order) > 0 && w.cancels < 2 }, w.cancel},
		{"replay", 8, func() bool { return len(w.now.dead) > 0 }, w.replay},
	}
}

func (w *world) come(*rapid.T) { w.note("%s comes", w.newWorker().s.consumer) }

func (w *world) crash(t *rapid.T) {
	m := pick(t, w.active, "worker")
	w.note("%s crashes", m.s.consumer)
	m.crash()
}

func (w *world) leave(t *rapid.T) {
	m := pick(t, w.active, "worker")
	heed, settle := rapid.Bool().Draw(t, "handlers heed the cancel"), rapid.Bool().Draw(t, "endings are carried out")
	w.note("%s leaves; its handlers heed the cancel: %v, its endings are carried out: %v", m.s.consumer, heed, settle)
	m.leave(t, heed, settle)
}

func (w *world) expireOne(t *rapid.T) {
	entry := pick(t, w.held(), "entry")
	w.note("the lease of %s at %s runs out", w.name(w.now.entries[entry]), w.now.holders[entry])
	w.expire(t, entry)
}

func (w *world) renew(t *rapid.T) {
	m := pick(t, w.active, "worker")
	w.note("%s renews", m.s.consumer)
	m.s.renewAll()
}

func (w *world) enqueue(t *rapid.T) {
	j := &modelJob{
		dedup:   rapid.IntRange(0, 9).Draw(t, "plain") != 0,
		result:  rapid.IntRange(0, 3).Draw(t, "no result") != 0,
		expires: rapid.IntRange(0, 7).Draw(t, "expires") == 7,
	}
	job := Job{Task: modelTask, Queue: modelQueue, Args: json.RawMessage(`{}`)}
	if j.dedup {
		job.Dedup = modelKey
	}
	if j.result {
		job.ResultTTL = time.Hour
	}
	if j.expires {
		job.ExpiresIn = time.Millisecond
	}
	if rapid.IntRange(0, 5).Draw(t, "delayed") == 5 {
		job.Delay = time.Hour
	}
	id, err := w.client.Enqueue(context.Background(), job)
	if err != nil {
		t.Fatalf("enqueue: %v", err)
	}
	j.id = id
	w.order, w.jobs[id] = append(w.order, id), j
	w.note("enqueue %s: %+v", w.name(id), *j)
}

// held lists the entries that workers hold, in order.
func (w *world) held() []string {
	var held []string
	for entry, holder := range w.now.holders {
		if holder != "released" {
			held = append(held, entry)
		}
	}
	slices.SortFunc(held, compareEntries)
	return held
}

func (w *world) read(t *rapid.T) {
	m := pick(t, w.where(hasRoom), "worker")
	w.wire.lose = rapid.IntRange(0, 9).Draw(t, "reply lost") == 9
	w.note("%s reads, reply lost %v", m.s.consumer, w.wire.lose)
	m.readSome(rapid.IntRange(1, m.s.hold.room(m.q, m.s.hold.free())).Draw(t, "count"), rapid.Bool().Draw(t, "busy"))
}

func (w *world) tick(t *rapid.T) {
	m := pick(t, w.active, "worker")
	w.wire.lose = rapid.IntRange(0, 9).Draw(t, "reply lost") == 9
	w.note("%s ticks, reply lost %v", m.s.consumer, w.wire.lose)
	w.rdb.Del(context.Background(), w.k.pass) // its time has passed
	_, _ = m.s.tick(m.q)
}

func (w *world) start(t *rapid.T) {
	m := pick(t, w.where(hasUnstarted), "worker")
	w.wire.twice = rapid.IntRange(0, 4).Draw(t, "sent twice") == 4
	w.note("%s starts, twice %v", m.s.consumer, w.wire.twice)
	m.start(t)
}

func (w *world) finish(t *rapid.T, err error) {
	m := pick(t, w.where(isRunning), "worker")
	r := pick(t, m.runs, "run")
	w.note("%s: handler of %s returns %v", m.s.consumer, w.name(r.job), err)
	m.finish(r, err)
}

func (w *world) flush(t *rapid.T) {
	m := pick(t, w.where(hasEndings), "worker")
	i := rapid.IntRange(0, len(m.s.endings.waiting)-1).Draw(t, "ending")
	w.wire.twice = rapid.IntRange(0, 4).Draw(t, "sent twice") == 4
	w.wire.loseRead = rapid.IntRange(0, 3).Draw(t, "reply to its read lost") == 3
	w.note("%s flushes, reply to its read lost %v", m.s.consumer, w.wire.loseRead)
	if rapid.Bool().Draw(t, "may read on") { // as it does where it believes that there is more
		m.q.dry = false
		m.q.acknowledged.Store(true)
	}
	m.flush(t, i)
}

// promote makes every delayed job due.
func (w *world) promote(t *rapid.T) {
	w.note("the delayed jobs come due")
	ctx := context.Background()
	for _, member := range w.rdb.ZRange(ctx, w.k.delayed, 0, -1).Val() {
		w.rdb.Do(ctx, "ZADD", w.k.delayed, "XX", 0, member)
	}
}

// release frees the key as its expiry would, and sees whether the client tells what was there.
func (w *world) release(t *rapid.T) {
	w.note("the key is freed")
	was, err := w.client.ReleaseDedup(context.Background(), modelKey)
	if err != nil || was.Owner != ownerOf(w.now.value) || was.Remaining <= 0 || (was.State == DedupClaimed) == w.holder.IsZero() {
		w.fail(t, "freed the key and was told %+v, %v", was, err)
	}
	w.holder, w.doneBy = JobID{}, JobID{}
	for _, m := range w.active {
		for _, r := range m.runs {
			r.guarded = false
		}
	}
}

func (w *world) cancel(t *rapid.T) {
	id := pick(t, w.order, "job")
	w.note("cancel %s", w.name(id))
	if err := w.client.Cancel(context.Background(), id); err != nil {
		t.Fatalf("cancel: %v", err)
	}
	w.jobs[id].cancelled = true
	w.cancels++
}

func (w *world) replay(t *rapid.T) {
	deaths := slices.Sorted(maps.Keys(w.now.dead))
	slices.SortFunc(deaths, func(a, b string) int {
		return slices.Index(w.order, w.now.dead[a]) - slices.Index(w.order, w.now.dead[b])
	})
	death := pick(t, deaths, "dead job")
	id := w.now.dead[death]
	dies := rapid.IntRange(0, 3).Draw(t, "dies half way") == 3
	w.note("replay %s, dies half way %v", w.name(id), dies)
	ctx := context.Background()
	w.jobs[id].forgotten = true
	if dies {
		result, token, _ := w.keys.outcome(id)
		if _, err := forgetScript.run(ctx, w.rdb, []string{result, token}, death); err != nil {
			t.Fatalf("forget: %v", err)
		}
	} else if err := w.client.Dead().Replay(ctx, id); err != nil {
		w.fail(t, "replay: %v", err)
	}
}

// settle lets every worker die and one new worker do the rest, which strands nobody.
func (w *world) settle(t *rapid.T) {
	for len(w.active) > 0 {
		w.active[0].crash()
	}
	w.note("all workers die, and a new one comes")
	m := w.newWorker()
	for round := 0; len(w.now.entries)+len(w.now.delayed) > 0; round++ {
		if round == 50 {
			w.fail(t, "jobs are left that no worker ends")
		}
		for _, entry := range w.held() {
			if m.q.entries[entry] == nil {
				w.expire(t, entry)
			}
		}
		if len(w.now.delayed) > 0 {
			w.promote(t)
		}
		w.wire.twice, w.wire.lose, w.wire.loseRead = false, false, false
		w.rdb.Del(context.Background(), w.k.pass)
		_, _ = m.s.tick(m.q)
		w.look(t)
		if room := m.s.hold.room(m.q, m.s.hold.free()); room > 0 && len(w.now.entries) > len(w.now.holders) {
			m.readSome(room, false)
		}
		w.check(t)
		for len(m.q.pending) > 0 || len(m.s.endings.waiting) > 0 {
			if len(m.q.pending) > 0 {
				m.start(t)
			}
			for len(m.runs) > 0 {
				m.finish(m.runs[0], nil)
			}
			if len(m.s.endings.waiting) > 0 {
				m.flush(t, 0)
			}
			w.check(t)
		}
	}
	if len(w.now.holders)+len(w.now.verdicts) > 0 {
		w.fail(t, "left behind: pending %v, verdicts %v", w.now.holders, w.now.verdicts)
	}
	m.s.scripts.close()
}
