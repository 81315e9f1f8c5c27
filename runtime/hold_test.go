package smallage

import (
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A worker holds at most twice its concurrency plus one entry per queue, replies under way included, and a queue of
// which it holds nothing can bring one while no ending is on its way: otherwise a full queue would hide another.
func TestAWorkerNeverHoldsMoreThanItsLimitNorHidesAQueue(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		queues := rapid.IntRange(1, 4).Draw(t, "queues")
		w := &Worker{keys: newKeyspace("n"), cfg: WorkerConfig{
			Concurrency:    rapid.IntRange(1, 5).Draw(t, "concurrency"),
			StrictPriority: rapid.Bool().Draw(t, "strict"),
			Queues:         map[string]int{},
		}}
		for i := range queues {
			name := strconv.Itoa(i)
			w.queues = append(w.queues, name)
			w.cfg.Queues[name] = rapid.IntRange(1, 5).Draw(t, "weight")
		}
		h := newHold(w)
		limit := 2*w.cfg.Concurrency + queues
		type reply struct {
			q *queueState
			n int
		}
		type flush struct {
			acked   []*delivery
			covered int
			behind  []reply
		}
		var underWay []reply
		var flushes []flush
		var running, returned []*delivery
		serial := 0
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			h.waiting = w.cfg.Concurrency - len(running)
			switch rapid.IntRange(0, 7).Draw(t, "step") {
			case 0:
				q := rapid.SampledFrom(h.queues).Draw(t, "reads")
				empty := len(q.pending)+q.reserved == 0
				n := h.reserve(q, rapid.Bool().Draw(t, "may block"))
				if empty && len(returned)+len(flushes) == 0 {
					require.Positive(t, n, "a queue of which nothing is held can bring one")
				}
				if n > 0 {
					underWay = append(underWay, reply{q, n})
				}
			case 1:
				q := rapid.SampledFrom(h.queues).Draw(t, "takes over")
				underWay = append(underWay, reply{q, h.reserveRest(q)})
			case 2:
				if len(underWay) == 0 {
					continue
				}
				r := underWay[0]
				underWay = underWay[1:]
				var list []*delivery
				for range rapid.IntRange(0, r.n).Draw(t, "brought") {
					serial++
					list = append(list, &delivery{queue: r.q, entry: strconv.Itoa(serial), count: 1})
				}
				h.wasDry(r.q, len(list) < r.n)
				h.add(r.q, list, r.n)
			case 3:
				if q := h.pick(); q != nil && len(running) < w.cfg.Concurrency {
					running = append(running, q.pending[0])
					q.pending = q.pending[1:]
				}
			case 4:
				if len(running) > 0 {
					h.drop(running[0])
					running = running[1:]
				}
			case 5:
				if len(running) > 0 {
					h.returned(running[0])
					returned = append(returned, running[0])
					running = running[1:]
				}
			case 6: // a flush begins, and may read on
				f := flush{acked: returned}
				h.flushBegins()
				for _, q := range h.queues {
					acked := 0
					for _, d := range returned {
						if d.queue == q {
							acked++
						}
					}
					if n, covered := h.reserveBehind(q, acked); n > 0 {
						f.behind = append(f.behind, reply{q, n})
						f.covered += covered
						require.LessOrEqual(t, covered, acked)
					}
				}
				flushes, returned = append(flushes, f), nil
			case 7: // a flush is over, and what it read comes in soon
				if len(flushes) == 0 {
					continue
				}
				i := rapid.IntRange(0, len(flushes)-1).Draw(t, "flush")
				h.flushed(flushes[i].acked, flushes[i].covered)
				underWay = append(underWay, flushes[i].behind...)
				flushes = slices.Delete(flushes, i, i+1)
			}
			// Whatever a flush reads on, Redis has deleted what made room for it.
			require.LessOrEqual(t, h.held+h.reserved-h.covered, limit)
			require.GreaterOrEqual(t, h.reserved, 0)
			require.GreaterOrEqual(t, h.covered, 0)
			if len(flushes) == 0 {
				require.Zero(t, h.covered)
			}
		}
	})
}
