package crashtest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	smallage "github.com/smallage/smallage/runtime"
)

// Findings is what the comparison of the ledgers with Redis came to.
type Findings struct {
	Problems []string
	Effects  int // side effects in all
	Repeated int // of those, again because of a kill or freeze in the documented gap
	Dead     int
	Skipped  int // duplicates
}

func (f *Findings) problem(format string, args ...any) {
	f.Problems = append(f.Problems, fmt.Sprintf(format, args...))
}

// life is what the ledgers say of one job.
type life struct {
	effects  int
	attempts map[int]bool // that failed
	runs     int
	late     int // of those, after the job was lost with a worker
}

// Verify compares what was enqueued, what the workers wrote down, and what is in Redis. Everything must have come to
// rest before.
func Verify(rdb *redis.Client, ns string, jobs []*Job, witness *Witness) (*Findings, error) {
	records, err := ReadLedgers(witness.ledger)
	if err != nil {
		return nil, err
	}
	witness.addLost(records)
	lives := map[string]*life{}
	for _, r := range records {
		l := lives[r.Job]
		if l == nil {
			l = &life{attempts: map[int]bool{}}
			lives[r.Job] = l
		}
		switch r.What {
		case Started:
			l.runs++
			if r.Delivery > 1 {
				l.late++
			}
		case Effect:
			l.effects++
		case Failed:
			l.attempts[r.Attempt] = true
		}
	}
	f := &Findings{}
	dead, err := readDead(rdb, ns, f)
	if err != nil {
		return nil, err
	}
	groups := map[string][]*Job{}
	known := map[string]bool{}
	for _, j := range jobs {
		id := j.ID.String()
		if known[id] {
			f.problem("two jobs got the id %s", id)
		}
		known[id] = true
		l := lives[id]
		if l == nil {
			l = &life{}
		}
		f.Effects += l.effects
		if extra := l.effects - 1; extra > 0 {
			f.Repeated += extra
			if allowed := witness.Excuses(id); extra > allowed {
				f.problem("job %s (%s, key %q) had its side effect %d times, %d of them explained:%s", id, j.Task.Name, j.Key, l.effects, 1+allowed, story(records, id))
			}
		}
		reason, buried := dead[id]
		if buried {
			f.Dead++
		}
		switch {
		case j.Late:
			// Once it was lost with a worker nobody knows whether it had started in time, so it runs.
			if l.runs > l.late || buried {
				f.problem("job %s had expired; it ran %d times, dead: %q", id, l.runs, reason)
			}
			if l.runs > 0 {
				f.checkOutcome(j, smallage.StatusOK)
			} else {
				f.checkOutcome(j, smallage.StatusExpired)
			}
		case j.Task == FailAlways:
			f.checkFailed(j, l, reason, buried)
		case j.Task == Poison:
			if !buried || reason != string(smallage.ReasonDeliveries) {
				f.problem("job %s kills its worker and is not dead for its deliveries (%q)", id, reason)
			}
		default:
			if buried {
				f.problem("job %s (%s) is dead: %s", id, j.Task.Name, reason)
			}
			if j.Key == "" {
				if l.effects == 0 && !j.Maybe {
					f.problem("job %s (%s) was lost: started %d times, failed in the attempts %v, no effect", id, j.Task.Name, l.runs, l.attempts)
				}
				f.checkOutcome(j, smallage.StatusOK)
			} else {
				groups[j.Key] = append(groups[j.Key], j)
			}
		}
	}
	for key, group := range groups {
		f.checkGroup(key, group, lives)
	}
	for id := range lives {
		if !known[id] && id != (smallage.JobID{}).String() {
			f.problem("a worker ran job %s, which nobody enqueued", id)
		}
	}
	for id := range dead {
		if !known[id] {
			f.problem("job %s is dead, and nobody enqueued it", id)
		}
	}
	return f, f.checkKeys(rdb, ns)
}

// story tells what the workers wrote down of one job, in the order of time.
func story(records []Record, id string) string {
	var mine []Record
	for _, r := range records {
		if r.Job == id {
			mine = append(mine, r)
		}
	}
	slices.SortStableFunc(mine, func(a, b Record) int { return a.Time.Compare(b.Time) })
	var text strings.Builder
	for _, r := range mine {
		fmt.Fprintf(&text, "\n\t%s process %d: %s (attempt %d, delivery %d)", r.Time.Format("15:04:05.000"), r.PID, r.What, r.Attempt, r.Delivery)
	}
	return text.String()
}

func (f *Findings) checkFailed(j *Job, l *life, reason string, buried bool) {
	if j.Maybe && l.runs == 0 && !buried {
		return
	}
	if !buried || reason != string(smallage.ReasonAttempts) {
		f.problem("job %s always fails and is not dead for its attempts (%q); failed in the attempts %v", j.ID, reason, l.attempts)
	}
	for attempt := 1; attempt <= j.Task.Attempts; attempt++ {
		if !l.attempts[attempt] {
			f.problem("job %s always fails, but never did in attempt %d: %v", j.ID, attempt, l.attempts)
		}
	}
	if len(l.attempts) > j.Task.Attempts {
		f.problem("job %s failed in more attempts than it has: %v", j.ID, l.attempts)
	}
	f.checkOutcome(j, smallage.StatusFailed)
}

// checkGroup looks at the jobs that share a dedup key: one of them ran.
func (f *Findings) checkGroup(key string, group []*Job, lives map[string]*life) {
	var owners []smallage.JobID
	certain := false
	for _, j := range group {
		certain = certain || !j.Maybe
		if l := lives[j.ID.String()]; l != nil && l.effects > 0 {
			owners = append(owners, j.ID)
		}
	}
	if len(owners) > 1 || len(owners) == 0 && certain {
		f.problem("of the %d jobs with key %q, %d had their side effect: %v", len(group), key, len(owners), owners)
		return
	}
	for _, j := range group {
		if len(owners) == 1 && j.ID == owners[0] {
			f.checkOutcome(j, smallage.StatusOK)
			continue
		}
		f.Skipped++
		f.checkOutcome(j, smallage.StatusDuplicate)
		if j.Asked && !j.Maybe && j.WaitErr == nil && !slices.Contains(owners, j.Outcome.Owner) {
			f.problem("job %s is told that %s holds key %q, but %v ran", j.ID, j.Outcome.Owner, key, owners)
		}
	}
}

func (f *Findings) checkOutcome(j *Job, want smallage.Status) {
	if !j.Asked || j.Maybe {
		return
	}
	if j.WaitErr != nil {
		f.problem("the waiter of job %s (%s) was not answered: %v", j.ID, j.Task.Name, j.WaitErr)
		return
	}
	if j.Outcome.Status != want {
		f.problem("job %s (%s, key %q) has the outcome %s, want %s: %s", j.ID, j.Task.Name, j.Key, j.Outcome.Status, want, j.Outcome.Error)
	}
	if want == smallage.StatusOK && j.Task == Value && len(j.Outcome.Value) > 0 && string(j.Outcome.Value) != j.ID.String() {
		f.problem("job %s has another's value: %q", j.ID, j.Outcome.Value)
	}
}

// checkKeys looks at what is left in Redis: nothing of jobs that have ended but for keys that expire and the dead.
func (f *Findings) checkKeys(rdb *redis.Client, ns string) error {
	ctx := context.Background()
	base := ns + ":{q:" + Queue + "}:"
	sizes := map[string]int64{
		"entries in the stream": rdb.XLen(ctx, base+"stream").Val(), "delayed jobs": rdb.ZCard(ctx, base+"delayed").Val(),
		"bodies of delayed jobs": rdb.HLen(ctx, base+"delayed:jobs").Val(), "open verdicts": rdb.HLen(ctx, base+"verdict").Val(),
	}
	pending, err := rdb.XPending(ctx, base+"stream", "workers").Result()
	if err != nil && !noGroup(err) {
		return err
	}
	if pending != nil {
		sizes["pending entries"] = pending.Count
	}
	for what, n := range sizes {
		if n != 0 {
			f.problem("%d %s are left", n, what)
		}
	}
	for _, family := range []string{"{r:", "{d:"} {
		keys := rdb.Scan(ctx, 0, ns+":"+family+"*", 1000).Iterator()
		for keys.Next(ctx) {
			switch ttl, err := rdb.PTTL(ctx, keys.Val()).Result(); {
			case err != nil:
				return err
			case ttl == -1:
				f.problem("key %s has no TTL", keys.Val())
			}
			if family == "{d:" {
				if state := rdb.Get(ctx, keys.Val()).Val(); strings.HasPrefix(state, "claimed:") {
					f.problem("key %s is still %s", keys.Val(), state)
				}
			}
		}
		if err := keys.Err(); err != nil {
			return err
		}
	}
	return nil
}

// readDead lists the dead jobs with the reasons of their deaths, and checks that its three keys agree.
func readDead(rdb *redis.Client, ns string, f *Findings) (map[string]string, error) {
	ctx := context.Background()
	base := ns + ":{q:" + Queue + "}:dead"
	deaths, err := rdb.ZRange(ctx, base, 0, -1).Result()
	if err != nil {
		return nil, err
	}
	bodies, err := rdb.HGetAll(ctx, base+":jobs").Result()
	if err != nil {
		return nil, err
	}
	ids, err := rdb.HGetAll(ctx, base+":ids").Result()
	if err != nil {
		return nil, err
	}
	if len(bodies) != len(deaths) || len(ids) != len(deaths) {
		f.problem("the dead letter queue disagrees with itself: %d deaths, %d bodies, %d ids", len(deaths), len(bodies), len(ids))
	}
	dead := map[string]string{}
	for _, death := range deaths {
		fields, err := unpack(bodies[death])
		if err != nil {
			return nil, fmt.Errorf("dead job %s: %w", death, err)
		}
		id := jobID(fields["job"])
		if _, twice := dead[id]; twice {
			f.problem("job %s is dead twice", id)
		}
		if ids[id] != death {
			f.problem("job %s: its burial is %s, the index says %q", id, death, ids[id])
		}
		dead[id] = fields["dead_reason"]
	}
	return dead, nil
}

// jobID is the second part of an entry's field job.
func jobID(text string) string {
	_, rest, _ := strings.Cut(text, " ")
	id, _, _ := strings.Cut(rest, " ")
	return id
}

// unpack reads a job at rest: its fields and values in turn, each as <bytes>:<text>.
func unpack(packed string) (map[string]string, error) {
	var texts []string
	for packed != "" {
		size, rest, found := strings.Cut(packed, ":")
		n, err := strconv.Atoi(size)
		if !found || err != nil || n > len(rest) {
			return nil, fmt.Errorf("not a packed job: %.40q", packed)
		}
		texts, packed = append(texts, rest[:n]), rest[n:]
	}
	fields := map[string]string{}
	for i := 0; i+1 < len(texts); i += 2 {
		fields[texts[i]] = texts[i+1]
	}
	return fields, nil
}
