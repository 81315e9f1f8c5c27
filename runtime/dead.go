package smallage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// DeadLetters looks into the dead letter queues of a namespace and brings jobs back. Each queue keeps its own dead jobs;
// those that ran out of attempts, were lost with their workers too often, were malformed, unknown or buried. It is safe
// for concurrent use, also by several operators at once.
type DeadLetters struct {
	rdb  redis.UniversalClient
	keys *keyspace
}

// Dead returns the client's view of the dead letter queues.
func (c *Client) Dead() *DeadLetters { return &DeadLetters{c.rdb, c.keys} }

// ErrNotDead is returned where a job is in no dead letter queue: it never was, was replayed or deleted, or has failed
// only just now: its outcome is written some milliseconds before it is buried.
var ErrNotDead = errors.New("smallage: no such dead job")

// DeadJob is a job in a dead letter queue.
type DeadJob struct {
	DeathID    string // names this burial
	ID         JobID  // zero where the entry had no readable id
	Task       string
	Queue      string
	Args       json.RawMessage // as enqueued; any bytes where the job is malformed
	Reason     Reason
	Error      string // of the last attempt
	DiedAt     time.Time
	EnqueuedAt time.Time
	Attempts   int
	History    []Attempt // the last ten
	Dedup      string
	ResultTTL  time.Duration
	Headers    map[string]string

	// Fields are the entry's own fields with all their bytes, those that this version does not know included. As this
	// version enqueues a job, its id, time, task and arguments are one field, job.
	Fields map[string]string
}

// DeadFilter selects dead jobs. The zero filter selects all; each field that is set narrows.
type DeadFilter struct {
	Queue   string
	Task    string
	Reason  Reason
	DeathID string
	Since   time.Time // died at or after
	Until   time.Time // died before
}

func (f *DeadFilter) matches(j *DeadJob) bool {
	return (f.Task == "" || f.Task == j.Task) && (f.Reason == "" || f.Reason == j.Reason) && (f.DeathID == "" || f.DeathID == j.DeathID) &&
		(f.Since.IsZero() || !j.DiedAt.Before(f.Since)) && (f.Until.IsZero() || j.DiedAt.Before(f.Until))
}

// List returns up to limit dead jobs, queue by queue in the order of their names and in each the oldest first. after is
// empty for the first page, and then the next that the last page returned; next is empty after the last page. Jobs that
// die, are replayed or deleted between pages do not make others appear twice or be left out.
func (d *DeadLetters) List(ctx context.Context, filter DeadFilter, after string, limit int) (jobs []DeadJob, next string, err error) {
	if limit <= 0 {
		return nil, "", invalidf("page size %d: use 1 or more", limit)
	}
	from, err := parseDeadCursor(after)
	if err != nil {
		return nil, "", err
	}
	for job, err := range d.from(ctx, filter, from) {
		if err != nil {
			return nil, "", err
		}
		if len(jobs) == limit {
			return jobs, cursorOf(&jobs[limit-1]).String(), nil
		}
		jobs = append(jobs, job)
	}
	return jobs, "", nil
}

// All yields the dead jobs that the filter selects, in the order of List, reading them in pages. An error ends it.
func (d *DeadLetters) All(ctx context.Context, filter DeadFilter) iter.Seq2[DeadJob, error] {
	return d.from(ctx, filter, deadCursor{})
}

// Get returns one dead job whole. ErrNotDead where there is none of this id.
func (d *DeadLetters) Get(ctx context.Context, id JobID) (DeadJob, error) {
	queues, err := d.queues(ctx, "")
	if err != nil {
		return DeadJob{}, err
	}
	for _, queue := range queues {
		k := d.keys.queue(queue)
		death, err := d.rdb.HGet(ctx, k.deadIDs, id.String()).Result()
		if isNilReply(err) {
			continue
		}
		if err != nil {
			return DeadJob{}, deadError("look up", queue, err)
		}
		packed, err := d.rdb.HGet(ctx, k.deadJobs, death).Result()
		if isNilReply(err) {
			continue
		}
		if err != nil {
			return DeadJob{}, deadError("look up", queue, err)
		}
		return decodeDead(queue, death, packed), nil
	}
	return DeadJob{}, fmt.Errorf("job %s: %w", id, ErrNotDead)
}

// Replay enqueues a dead job anew: the same id, fresh attempts and deliveries, its history kept, and no longer able to
// expire. Its outcome is cleared first, so that a waiter waits for the new one. Replaying twice at once, or again after
// a crash, runs it once. ErrNotDead where there is none of this id.
func (d *DeadLetters) Replay(ctx context.Context, id JobID) error {
	job, err := d.Get(ctx, id)
	if err != nil {
		return err
	}
	moved, err := d.replay(ctx, &job)
	if err == nil && !moved {
		err = fmt.Errorf("job %s: %w: somebody else replayed or deleted it", id, ErrNotDead)
	}
	return err
}

// ReplayAll replays the dead jobs that the filter selects and returns how many it moved; jobs that die again meanwhile
// are left. After an error, calling it again goes on with the rest.
func (d *DeadLetters) ReplayAll(ctx context.Context, filter DeadFilter) (int, error) {
	now, err := d.rdb.Time(ctx).Result()
	if err != nil {
		return 0, deadError("replay", filter.Queue, err)
	}
	if end := now.Add(time.Millisecond); filter.Until.IsZero() || filter.Until.After(end) {
		filter.Until = end
	}
	n := 0
	for job, err := range d.All(ctx, filter) {
		if err != nil {
			return n, err
		}
		if job.ID.IsZero() {
			continue // it has no readable id, so it could only die again
		}
		moved, err := d.replay(ctx, &job)
		if err != nil {
			return n, err
		}
		if moved {
			n++
		}
	}
	return n, nil
}

func (d *DeadLetters) replay(ctx context.Context, job *DeadJob) (bool, error) {
	if job.ID.IsZero() {
		return false, invalidf("dead job %s of queue %s: it has no readable id and cannot be replayed; delete it, and enqueue it anew from its Fields", job.DeathID, job.Queue)
	}
	result, token, _ := d.keys.outcome(job.ID)
	if _, err := forgetScript.run(ctx, d.rdb, []string{result, token}, job.DeathID); err != nil {
		return false, deadError("replay", job.Queue, err)
	}
	point("replay-forgotten")
	k := d.keys.queue(job.Queue)
	args := []any{job.DeathID, fieldExpiresAt, fieldUnknownSince} // and which fields the job loses
	for _, name := range burialFields {
		args = append(args, name)
	}
	reply, err := replayScript.run(ctx, d.rdb, []string{k.stream, k.dead, k.deadJobs, k.deadIDs, k.cancel}, args...)
	if err != nil {
		return false, deadError("replay", job.Queue, err)
	}
	point("replayed")
	return replyNumber(reply) == 1, nil
}

// Delete removes one dead job for good; its outcome stays until its TTL. ErrNotDead where there is none of this id.
func (d *DeadLetters) Delete(ctx context.Context, id JobID) error {
	job, err := d.Get(ctx, id)
	if err != nil {
		return err
	}
	n, err := d.remove(ctx, job.Queue, []any{job.DeathID})
	if err == nil && n == 0 {
		err = fmt.Errorf("job %s: %w: somebody else replayed or deleted it", id, ErrNotDead)
	}
	return err
}

// DeleteAll removes the dead jobs that the filter selects for good and returns how many there were.
func (d *DeadLetters) DeleteAll(ctx context.Context, filter DeadFilter) (int, error) {
	n := 0
	var queue string
	var batch []any
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		removed, err := d.remove(ctx, queue, batch)
		n, batch = n+removed, nil
		return err
	}
	for job, err := range d.All(ctx, filter) {
		if err != nil {
			return n, err
		}
		if job.Queue != queue || len(batch) == deadPage {
			if err := flush(); err != nil {
				return n, err
			}
			queue = job.Queue
		}
		batch = append(batch, job.DeathID)
	}
	return n, flush()
}

// Purge removes every dead job of the namespace that died longer ago than this, by Redis's clock, and returns how many.
func (d *DeadLetters) Purge(ctx context.Context, olderThan time.Duration) (int, error) {
	now, err := d.rdb.Time(ctx).Result()
	if err != nil {
		return 0, deadError("purge", "", err)
	}
	return d.DeleteAll(ctx, DeadFilter{Until: now.Add(-olderThan)})
}

func (d *DeadLetters) remove(ctx context.Context, queue string, deaths []any) (int, error) {
	k := d.keys.queue(queue)
	reply, err := undeadScript.run(ctx, d.rdb, []string{k.dead, k.deadJobs, k.deadIDs}, deaths...)
	if err != nil {
		return 0, deadError("delete", queue, err)
	}
	return int(replyNumber(reply)), nil
}

func deadError(what, queue string, err error) error {
	return fmt.Errorf("smallage: %s dead jobs of queue %q: %w", what, queue, err)
}

// queues lists the queues of the registry, or the one named.
func (d *DeadLetters) queues(ctx context.Context, only string) ([]string, error) {
	if only != "" {
		if !validName(only) {
			return nil, invalidf("queue name %q: use letters, digits, '.', '_' and '-'", shorten(only))
		}
		return []string{only}, nil
	}
	queues, err := d.rdb.SMembers(ctx, d.keys.registry()).Result()
	if err != nil {
		return nil, fmt.Errorf("smallage: list the queues: %w", err)
	}
	slices.Sort(queues)
	return queues, nil
}

// deadPage is how many dead jobs one command reads or removes.
const deadPage = 200

// deadCursor stands behind one dead job, in the order of List.
type deadCursor struct {
	queue string
	died  int64 // ms
	death string
}

func cursorOf(j *DeadJob) deadCursor { return deadCursor{j.Queue, j.DiedAt.UnixMilli(), j.DeathID} }

func (c deadCursor) String() string {
	return c.queue + "/" + strconv.FormatInt(c.died, 10) + "/" + c.death
}

func parseDeadCursor(s string) (deadCursor, error) {
	if s == "" {
		return deadCursor{}, nil
	}
	parts := strings.Split(s, "/")
	if len(parts) != 3 {
		return deadCursor{}, invalidf("page %q: pass what List returned as next, or nothing", shorten(s))
	}
	died, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil {
		return deadCursor{}, invalidf("page %q: pass what List returned as next, or nothing", shorten(s))
	}
	return deadCursor{parts[0], died, parts[2]}, nil
}

// from yields what the filter selects behind a cursor.
func (d *DeadLetters) from(ctx context.Context, filter DeadFilter, at deadCursor) iter.Seq2[DeadJob, error] {
	return func(yield func(DeadJob, error) bool) {
		queues, err := d.queues(ctx, filter.Queue)
		if err != nil {
			yield(DeadJob{}, err)
			return
		}
		for _, queue := range queues {
			if queue < at.queue {
				continue
			}
			here := deadCursor{queue: queue}
			if queue == at.queue {
				here = at
			}
			for {
				page, next, err := d.page(ctx, queue, here, &filter)
				if err != nil {
					yield(DeadJob{}, err)
					return
				}
				for _, job := range page {
					if !yield(job, nil) {
						return
					}
				}
				if next == here {
					break
				}
				here = next
			}
		}
	}
}

// page reads the next dead jobs of one queue behind a cursor, and returns where it came to: the cursor itself at the end.
func (d *DeadLetters) page(ctx context.Context, queue string, at deadCursor, filter *DeadFilter) ([]DeadJob, deadCursor, error) {
	k := d.keys.queue(queue)
	least := at.died
	if !filter.Since.IsZero() {
		least = max(least, filter.Since.UnixMilli())
	}
	most := "+inf"
	if !filter.Until.IsZero() {
		most = strconv.FormatInt(filter.Until.UnixMilli(), 10)
	}
	var rows []redis.Z
	// Several jobs may have died in the cursor's millisecond; those up to its own name were seen.
	for offset := int64(0); ; offset += deadPage {
		found, err := d.rdb.ZRangeByScoreWithScores(ctx, k.dead, &redis.ZRangeBy{
			Min: strconv.FormatInt(least, 10), Max: most, Offset: offset, Count: deadPage,
		}).Result()
		if err != nil {
			return nil, at, deadError("list", queue, err)
		}
		for _, z := range found {
			if member, _ := z.Member.(string); int64(z.Score) > at.died || member > at.death {
				rows = append(rows, z)
			}
		}
		if len(rows) > 0 || len(found) < deadPage {
			break
		}
	}
	if len(rows) == 0 {
		return nil, at, nil
	}
	deaths := make([]string, len(rows))
	for i, z := range rows {
		deaths[i], _ = z.Member.(string)
	}
	packed, err := d.rdb.HMGet(ctx, k.deadJobs, deaths...).Result()
	if err != nil {
		return nil, at, deadError("list", queue, err)
	}
	var jobs []DeadJob
	for i, p := range packed {
		if text, ok := p.(string); ok {
			if job := decodeDead(queue, deaths[i], text); filter.matches(&job) {
				jobs = append(jobs, job)
			}
		}
	}
	last := rows[len(rows)-1]
	return jobs, deadCursor{queue, int64(last.Score), deaths[len(deaths)-1]}, nil
}

func decodeDead(queue, death, packed string) DeadJob {
	fields := unpackFields(packed)
	list := make([][]byte, 0, 2*len(fields))
	for name, value := range fields {
		list = append(list, []byte(name), []byte(value))
	}
	var env envelope
	_ = env.decode(list, nil) // a malformed job shows what can be read
	job := DeadJob{
		DeathID: death, ID: env.id, Task: env.task, Queue: queue, Args: env.args,
		Reason: Reason(fields[fieldDeadReason]), Error: fields[fieldDeadError], DiedAt: time.UnixMilli(atoi(fields[fieldDiedAt])),
		EnqueuedAt: time.UnixMilli(env.enqueuedAt), Attempts: int(atoi(fields[fieldRuns])), Dedup: env.dedup, ResultTTL: env.resultTTL,
		Headers: env.headers, Fields: fields,
	}
	if env.history != "" {
		_ = json.Unmarshal([]byte(env.history), &job.History)
	}
	for _, name := range burialFields {
		delete(fields, name)
	}
	return job
}

// unpackFields reads what job.lua's pack writes. What does not follow its form is left out.
func unpackFields(packed string) map[string]string {
	fields := map[string]string{}
	next := func() (string, bool) {
		size, rest, ok := strings.Cut(packed, ":")
		n, err := strconv.Atoi(size)
		if !ok || err != nil || n < 0 || n > len(rest) {
			return "", false
		}
		packed = rest[n:]
		return rest[:n], true
	}
	for packed != "" {
		name, ok := next()
		if !ok {
			break
		}
		value, ok := next()
		if !ok {
			break
		}
		fields[name] = value
	}
	return fields
}
