package smallage

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/smallage/smallage/internal/redistest"
)

// scene is one interleaving that the model came upon, or hardly ever comes upon, played in full.
func scene(t *testing.T, play func(rt *rapid.T, w *world)) {
	t.Helper()
	rdb, wire := redistest.Shared(t).Client(), &wire{}
	rdb.AddHook(wire)
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(redistest.Namespace(t), rdb, wire)
		defer w.close()
		w.check(rt)
		play(rt, w)
		w.settle(rt)
	})
}

// put enqueues a job of the key.
func (w *world) put(t *rapid.T) JobID {
	id, err := w.client.Enqueue(context.Background(), Job{
		Task: modelTask, Queue: modelQueue, Args: json.RawMessage(`{}`), Dedup: modelKey, ResultTTL: time.Hour,
	})
	if err != nil {
		t.Fatalf("enqueue: %v", err)
	}
	w.order, w.jobs[id] = append(w.order, id), &modelJob{id: id, dedup: true, result: true}
	w.check(t)
	return id
}

// entry is where a job stands in the stream.
func (w *world) entry(id JobID) string {
	for entry, job := range w.now.entries {
		if job == id {
			return entry
		}
	}
	return ""
}

func (w *world) step(t *rapid.T, f func()) {
	f()
	w.check(t)
}

// A worker decides that a job is a duplicate, and is then frozen past its lease. Another one takes the job over after
// the key was freed, claims, and hands the job back. Were the first to take it from there, its old decision would pass
// for the holder's, and leave the claim behind.
func TestAWorkerTakesNothingBackThatItStillHasInHand(t *testing.T) {
	t.Parallel()
	scene(t, func(rt *rapid.T, w *world) {
		first, second := w.newWorker(), w.newWorker()
		owner := w.put(rt)
		w.step(rt, func() { _, _ = first.s.tick(first.q) })
		w.step(rt, func() { first.readSome(1, false) })
		w.step(rt, func() { first.start(rt) })
		id := w.put(rt)
		w.step(rt, func() { first.readSome(1, false) })
		w.step(rt, func() { first.start(rt) })
		require.True(rt, w.jobs[id].skipped)
		require.Equal(rt, owner, w.holder)

		w.step(rt, func() { w.expire(rt, w.entry(id)) })
		w.step(rt, func() { w.release(rt) })
		w.step(rt, func() {
			w.rdb.Del(context.Background(), w.k.pass)
			_, _ = second.s.tick(second.q)
		})
		w.step(rt, func() { second.start(rt) })
		require.Equal(rt, id, w.holder, "the second worker runs it")
		w.step(rt, func() { second.leave(rt, false, false) })
		w.step(rt, func() { _, _ = first.s.tick(first.q) })
		require.Equal(rt, "released", w.now.holders[w.entry(id)])
		for len(first.s.endings.waiting) > 0 {
			w.step(rt, func() { first.flush(rt, 0) })
		}
		require.Equal(rt, id, w.holder)
	})
}

// A worker is frozen before it claims. Meanwhile another takes the job over and buries it, which frees the key. The
// first must not claim it for a job that is dead.
func TestAThawedWorkerDoesNotClaimForAJobThatDied(t *testing.T) {
	t.Parallel()
	scene(t, func(rt *rapid.T, w *world) {
		first, second := w.newWorker(), w.newWorker()
		id := w.put(rt)
		w.step(rt, func() { _, _ = first.s.tick(first.q) })
		w.step(rt, func() { first.readSome(1, false) })
		w.step(rt, func() { w.expire(rt, w.entry(id)) })
		w.step(rt, func() {
			w.rdb.Del(context.Background(), w.k.pass)
			_, _ = second.s.tick(second.q)
		})
		w.step(rt, func() { second.start(rt) })
		w.step(rt, func() { second.finish(second.runs[0], Bury(context.Canceled)) })
		for len(second.s.endings.waiting) > 0 {
			w.step(rt, func() { second.flush(rt, 0) })
		}
		_, _, dead := w.now.places(id)
		require.Equal(rt, 1, dead)
		w.step(rt, func() { first.start(rt) })
		require.Empty(rt, first.runs)
		require.Empty(rt, w.now.value, "the key is free")
	})
}

// A worker is frozen in the moment before its claim reaches Redis. Meanwhile the job ends elsewhere, and the key is free.
func TestAClaimThatComesLateForAJobThatHasEndedIsGivenUp(t *testing.T) {
	t.Parallel()
	for name, rival := range map[string]bool{"dead": false, "a duplicate": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scene(t, func(rt *rapid.T, w *world) {
				first, second := w.newWorker(), w.newWorker()
				flush := func() {
					for len(second.s.endings.waiting) > 0 {
						w.step(rt, func() { second.flush(rt, 0) })
					}
				}
				w.step(rt, func() { _, _ = first.s.tick(first.q) })
				if rival {
					w.put(rt)
					w.step(rt, func() { second.readSome(1, false) })
					w.step(rt, func() { second.start(rt) })
				}
				id := w.put(rt)
				w.step(rt, func() { first.readSome(1, false) })
				w.wire.beforeClaim = func() {
					w.step(rt, func() { w.expire(rt, w.entry(id)) })
					w.step(rt, func() {
						w.rdb.Del(context.Background(), w.k.pass)
						_, _ = second.s.tick(second.q)
					})
					w.step(rt, func() { second.start(rt) })
					flush()
					w.step(rt, func() { second.finish(second.runs[0], Bury(context.Canceled)) })
					flush()
				}
				w.step(rt, func() { first.start(rt) })
				require.Nil(rt, w.wire.beforeClaim)
				require.Empty(rt, first.runs)
				require.Empty(rt, w.now.value, "the key is free")
			})
		})
	}
}
