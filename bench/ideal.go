package main

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

// idealQueue is what Redis and go-redis can do at best: XREADGROUP COUNT n, a goroutine pool, endings sent together as
// they come. It is no queue: no leases, no retries, no takeover, no decoding, nothing that survives a crash in order.
type idealQueue struct {
	o   *order
	rdb redis.UniversalClient
}

const idealStream, idealGroup = "ideal", "g"

func (q *idealQueue) open(ctx context.Context, o *order) error {
	q.o, q.rdb = o, redis.NewUniversalClient(&redis.UniversalOptions{Addrs: o.Redis, PoolSize: 100})
	err := q.rdb.XGroupCreateMkStream(ctx, idealStream, idealGroup, "0").Err()
	if err != nil && !strings.HasPrefix(err.Error(), "BUSYGROUP") {
		return err
	}
	return nil
}

func (q *idealQueue) reset(context.Context) error { return nil }
func (q *idealQueue) close()                      { _ = q.rdb.Close() }

func (q *idealQueue) enqueue(ctx context.Context, id uuid.UUID) error {
	return q.rdb.Do(ctx, "XADD", idealStream, "*", "p", id[:]).Err()
}

func (q *idealQueue) batch(ctx context.Context, ids []uuid.UUID) error {
	pipe := q.rdb.Pipeline()
	for i := range ids {
		pipe.Do(ctx, "XADD", idealStream, "*", "p", ids[i][:])
	}
	_, err := pipe.Exec(ctx)
	return err
}

// idealClaim is the one script of the ideal worker: a claim that does not come back for its own job is no claim.
var idealClaim = redis.NewScript(`
local v = redis.call('GET', KEYS[1])
if not v then redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) return 1 end
if v == ARGV[1] then return 1 end
return 0`)

type idealJob struct{ entry, payload string }

func (q *idealQueue) work(ctx context.Context, handle func(uuid.UUID)) error {
	f, n := q.o.Features, q.o.Concurrency
	if f.Dedup {
		if err := idealClaim.Load(ctx, q.rdb).Err(); err != nil {
			return err
		}
	}
	jobs, done := make(chan idealJob, n), make(chan idealJob, n)
	var runners, ender sync.WaitGroup
	for range n {
		runners.Go(func() {
			for j := range jobs {
				handle(uuid.UUID([]byte(j.payload)))
				done <- j
			}
		})
	}
	ender.Go(func() { q.end(done) })
	var failed error
	for ctx.Err() == nil && failed == nil {
		streams, err := q.rdb.XReadGroup(ctx, &redis.XReadGroupArgs{
			Group: idealGroup, Consumer: "c", Streams: []string{idealStream, ">"}, Count: int64(n), Block: 200 * time.Millisecond,
		}).Result()
		if err != nil {
			if !errors.Is(err, redis.Nil) && ctx.Err() == nil {
				failed = err
			}
			continue
		}
		messages := streams[0].Messages
		if f.Dedup {
			pipe := q.rdb.Pipeline()
			for _, m := range messages {
				payload := m.Values["p"].(string)
				idealClaim.EvalSha(ctx, pipe, []string{"{d:" + payload + "}"}, payload, dedupTTL.Milliseconds())
			}
			if _, err := pipe.Exec(ctx); err != nil {
				failed = err
			}
		}
		for _, m := range messages {
			jobs <- idealJob{m.ID, m.Values["p"].(string)}
		}
	}
	close(jobs)
	runners.Wait()
	close(done)
	ender.Wait()
	return failed
}

// end acknowledges what is at hand, again and again.
func (q *idealQueue) end(done <-chan idealJob) {
	ctx := context.Background()
	for j := range done {
		batch := []idealJob{j}
		for more := true; more; {
			select {
			case j, ok := <-done:
				if more = ok; ok {
					batch = append(batch, j)
				}
			default:
				more = false
			}
		}
		pipe := q.rdb.Pipeline()
		ids := make([]string, len(batch))
		for i, j := range batch {
			ids[i] = j.entry
			if q.o.Features.Dedup {
				pipe.Set(ctx, "{d:"+j.payload+"}", "done:"+j.payload, dedupTTL)
			}
			if q.o.Features.Result {
				idealOutcome(ctx, pipe, j.payload)
			}
		}
		pipe.XAck(ctx, idealStream, idealGroup, ids...)
		pipe.XDel(ctx, idealStream, ids...)
		_, _ = pipe.Exec(ctx)
	}
}

func idealOutcome(ctx context.Context, pipe redis.Pipeliner, payload string) {
	result, token := "{r:"+payload+"}:result", "{r:"+payload+"}:token"
	pipe.HSet(ctx, result, "status", "ok", "finished_at", time.Now().UnixMilli(), "task", "bench.Noop", "attempts", 1)
	pipe.PExpire(ctx, result, resultTTL)
	pipe.RPush(ctx, token, "1")
	pipe.PExpire(ctx, token, resultTTL)
}

func (q *idealQueue) ask(ctx context.Context, id uuid.UUID) error {
	if err := q.enqueue(ctx, id); err != nil {
		return err
	}
	token := "{r:" + string(id[:]) + "}:token"
	if err := q.rdb.BLMove(ctx, token, token, "LEFT", "LEFT", 10*time.Second).Err(); err != nil {
		return err
	}
	return q.rdb.HGetAll(ctx, "{r:"+string(id[:])+"}:result").Err()
}

func (q *idealQueue) park(context.Context, uuid.UUID) error { return errUnsupported }

// wholeQueue adds by a bare XADD the very entry that Smallage writes, with its text at hand: what is left of the
// difference is what Smallage does with a job before it is sent.
type wholeQueue struct{ idealQueue }

func wholeEntry(id uuid.UUID, now time.Time) []any {
	return []any{
		"XADD", idealStream, "*", "job",
		"1 " + id.String() + " " + strconv.FormatInt(now.UnixMilli(), 10) + ` bench.Noop {"docID":"` + id.String() + `"}`,
	}
}

func (q *wholeQueue) enqueue(ctx context.Context, id uuid.UUID) error {
	return q.rdb.Do(ctx, wholeEntry(id, time.Now())...).Err()
}

func (q *wholeQueue) batch(ctx context.Context, ids []uuid.UUID) error {
	pipe := q.rdb.Pipeline()
	now := time.Now()
	for i := range ids {
		pipe.Do(ctx, wholeEntry(ids[i], now)...)
	}
	_, err := pipe.Exec(ctx)
	return err
}
