package crashtest

import (
	"context"
	"fmt"
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
	excused map[string]map[int]bool // job → processes
}

// NewWitness returns a witness that has seen nothing yet.
func NewWitness(rdb *redis.Client, ns, ledger string) *Witness {
	return &Witness{rdb: rdb, ns: ns, ledger: ledger, excused: map[string]map[int]bool{}}
}

// Killed is called after a process was killed: what it did and had not acknowledged may be done again.
func (w *Witness) Killed(pid int) error {
	records, err := readLedger(ledgerPath(w.ledger, pid))
	if err != nil {
		return err
	}
	did := map[string]bool{}
	for _, r := range records {
		if r.What == Effect {
			did[r.Job] = true
		}
	}
	if err := w.lookAtKeys(pid, records); err != nil {
		return err
	}
	return w.look(pid, "", func(job string) bool { return did[job] }) // by whomever it is held by now
}

// lookAtKeys excuses what a process did and did not mark done. It takes one command, since another process may soon have
// done it again.
func (w *Witness) lookAtKeys(pid int, records []Record) error {
	var jobs, keys []string
	for _, r := range records {
		if r.What == Effect && r.Key != "" {
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
			w.excuse(jobs[i], pid)
		}
	}
	return nil
}

// Frozen is called after a process was frozen: what it has in hand it may do, or have done, besides another.
func (w *Witness) Frozen(pid int) error {
	return w.look(pid, consumerName(pid)+"-", func(string) bool { return true })
}

// look excuses jobs that consumers with this prefix hold, unless they are done.
func (w *Witness) look(pid int, prefix string, excuse func(job string) bool) error {
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
				job, _ := e.Values["id"].(string)
				key, _ := e.Values["dedup"].(string)
				if !excuse(job) {
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
				w.excuse(job, pid)
			}
		}
	}
	return nil
}

func (w *Witness) excuse(job string, pid int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.excused[job] == nil {
		w.excused[job] = map[int]bool{}
	}
	w.excused[job][pid] = true
}

// addLost counts what the workers themselves reported: a worker that was cut off for longer than its lease says so.
func (w *Witness) addLost(records []Record) {
	for _, r := range records {
		if r.What == "lease-lost" {
			w.excuse(r.Job, r.PID)
		}
	}
}

// Excuses is in how many processes the job may have run besides the one that ended it.
func (w *Witness) Excuses(job string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.excused[job])
}

func noGroup(err error) bool {
	return strings.Contains(err.Error(), "NOGROUP") || strings.Contains(err.Error(), "no such key")
}
