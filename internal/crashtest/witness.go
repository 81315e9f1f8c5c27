package crashtest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Witness knows which side effects may happen again: those of jobs that a process had in hand when it was killed or
// frozen, and whose dedup key was not yet marked done. That is the gap which the documentation names; every other
// repetition is a bug.
type Witness struct {
	rdb    *redis.Client // not through the proxy that workers use
	ns     string
	ledger string

	mu      sync.Mutex
	excused map[string]map[run]bool // of each job
}

// run is one run of a job. A process may run a job again that it lost while it was frozen.
type run struct{ pid, attempt, delivery int }

// NewWitness returns a witness that has seen nothing yet.
func NewWitness(rdb *redis.Client, ns, ledger string) *Witness {
	return &Witness{rdb: rdb, ns: ns, ledger: ledger, excused: map[string]map[run]bool{}}
}

// Killed is called after a process was killed: what it did and had not acknowledged may be done again.
func (w *Witness) Killed(pid int) error {
	records, err := readLedger(ledgerPath(w.ledger, pid))
	if err != nil {
		return err
	}
	did := map[string]Record{} // the last of each job
	for _, r := range records {
		if r.What == Effect {
			did[r.Job] = r
		}
	}
	if err := w.lookAtKeys(did); err != nil {
		return err
	}
	return w.look("", func(job string, _ run) (run, bool) { // by whomever it is held by now
		r, ok := did[job]
		return r.run(), ok
	})
}

func (r Record) run() run { return run{r.PID, r.Attempt, r.Delivery} }

// lookAtKeys excuses what a process did and did not mark done. It takes one command, since another process may soon have
// done it again.
func (w *Witness) lookAtKeys(did map[string]Record) error {
	var jobs, keys []string
	for _, r := range did {
		if r.Key != "" {
			jobs, keys = append(jobs, r.Job), append(keys, w.ns+":{d:"+r.Key+"}")
		}
	}
	if len(keys) == 0 {
		return nil
	}
	states, err := w.rdb.MGet(context.Background(), keys...).Result()
	if err != nil {
		return err
	}
	for i, state := range states {
		if state != "done:"+jobs[i] {
			w.excuse(jobs[i], did[jobs[i]].run())
		}
	}
	return nil
}

// Frozen is called after a process was frozen: what it has in hand it may do, or have done, besides another.
func (w *Witness) Frozen(pid int) error {
	return w.look(consumerName(pid)+"-", func(_ string, held run) (run, bool) {
		held.pid = pid
		return held, true
	})
}

// look excuses runs of jobs that consumers with this prefix hold, unless they are done. which gets the run that the
// consumer holds, but for its process, and names the one to excuse.
func (w *Witness) look(prefix string, which func(job string, held run) (run, bool)) error {
	ctx := context.Background()
	stream := w.ns + ":{q:" + Queue + "}:stream"
	consumers, err := w.rdb.XInfoConsumers(ctx, stream, "workers").Result()
	if err != nil && !noGroup(err) {
		return fmt.Errorf("list the consumers: %w", err)
	}
	for _, c := range consumers {
		if !strings.HasPrefix(c.Name, prefix) {
			continue
		}
		pending, err := w.rdb.XPendingExt(ctx, &redis.XPendingExtArgs{
			Stream: stream, Group: "workers", Start: "-", End: "+", Count: 10_000, Consumer: c.Name,
		}).Result()
		if err != nil {
			return fmt.Errorf("list what %s holds: %w", c.Name, err)
		}
		for _, p := range pending {
			entries, err := w.rdb.XRange(ctx, stream, p.ID, p.ID).Result()
			if err != nil {
				return err
			}
			for _, e := range entries {
				text, _ := e.Values["job"].(string)
				job := jobID(text) // an entry that wakes workers has none
				key, _ := e.Values["dedup"].(string)
				attempt := 1
				if text, retried := e.Values["attempt"].(string); retried {
					if attempt, err = strconv.Atoi(text); err != nil {
						return fmt.Errorf("attempt of entry %s: %w", e.ID, err)
					}
				}
				excused, ok := which(job, run{attempt: attempt, delivery: int(p.RetryCount)})
				if !ok {
					continue
				}
				if key != "" {
					state, err := w.rdb.Get(ctx, w.ns+":{d:"+key+"}").Result()
					if err != nil && err != redis.Nil {
						return err
					}
					if state == "done:"+job {
						continue
					}
				}
				w.excuse(job, excused)
			}
		}
	}
	return nil
}

func (w *Witness) excuse(job string, r run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.excused[job] == nil {
		w.excused[job] = map[run]bool{}
	}
	w.excused[job][r] = true
}

// addLost counts what the workers themselves reported: a worker that was cut off for longer than its lease says so.
func (w *Witness) addLost(records []Record) {
	for _, r := range records {
		if r.What == "lease-lost" {
			w.excuse(r.Job, r.run())
		}
	}
}

// Excuses is how many runs the job may have had besides the one that ended it.
func (w *Witness) Excuses(job string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.excused[job])
}

func noGroup(err error) bool {
	return strings.Contains(err.Error(), "NOGROUP") || strings.Contains(err.Error(), "no such key")
}
