package main

import (
	"context"
	"strconv"
	"strings"
	"sync"

	"github.com/google/uuid"
	"github.com/redis/rueidis"
)

// rueidisQueue is idealQueue on rueidis, whose client sends what concurrent callers ask for in one pipeline by itself.
type rueidisQueue struct {
	o      *order
	client rueidis.Client
}

func (q *rueidisQueue) open(ctx context.Context, o *order) (err error) {
	q.o = o
	if q.client, err = rueidis.NewClient(rueidis.ClientOption{InitAddress: o.Redis, DisableCache: true}); err != nil {
		return err
	}
	err = q.client.Do(ctx, q.client.B().XgroupCreate().Key(idealStream).Group(idealGroup).Id("0").Mkstream().Build()).Error()
	if err != nil && !strings.HasPrefix(err.Error(), "BUSYGROUP") {
		return err
	}
	return nil
}

func (q *rueidisQueue) reset(context.Context) error { return nil }
func (q *rueidisQueue) close()                      { q.client.Close() }

func (q *rueidisQueue) add(id uuid.UUID) rueidis.Completed {
	return q.client.B().Xadd().Key(idealStream).Id("*").FieldValue().FieldValue("p", rueidis.BinaryString(id[:])).Build()
}

func (q *rueidisQueue) enqueue(ctx context.Context, id uuid.UUID) error {
	return q.client.Do(ctx, q.add(id)).Error()
}

func (q *rueidisQueue) batch(ctx context.Context, ids []uuid.UUID) error {
	cmds := make(rueidis.Commands, len(ids))
	for i := range ids {
		cmds[i] = q.add(ids[i])
	}
	for _, r := range q.client.DoMulti(ctx, cmds...) {
		if err := r.Error(); err != nil {
			return err
		}
	}
	return nil
}

func (q *rueidisQueue) work(ctx context.Context, handle func(uuid.UUID)) error {
	n := q.o.Concurrency
	jobs, done := make(chan idealJob, n), make(chan string, n)
	var runners, ender sync.WaitGroup
	for range n {
		runners.Go(func() {
			for j := range jobs {
				handle(uuid.UUID([]byte(j.payload)))
				done <- j.entry
			}
		})
	}
	ender.Go(func() { q.end(done) })
	var failed error
	for ctx.Err() == nil && failed == nil {
		cmd := q.client.B().Arbitrary("XREADGROUP", "GROUP", idealGroup, "c", "COUNT", strconv.Itoa(n), "BLOCK", "200", "STREAMS").
			Keys(idealStream).Args(">").Blocking()
		streams, err := q.client.Do(ctx, cmd).AsXRead()
		if err != nil {
			if !rueidis.IsRedisNil(err) && ctx.Err() == nil {
				failed = err
			}
			continue
		}
		for _, m := range streams[idealStream] {
			jobs <- idealJob{m.ID, m.FieldValues["p"]}
		}
	}
	close(jobs)
	runners.Wait()
	close(done)
	ender.Wait()
	return failed
}

func (q *rueidisQueue) end(done <-chan string) {
	ctx := context.Background()
	for entry := range done {
		ids := []string{entry}
		for more := true; more; {
			select {
			case entry, ok := <-done:
				if more = ok; ok {
					ids = append(ids, entry)
				}
			default:
				more = false
			}
		}
		q.client.DoMulti(ctx,
			q.client.B().Xack().Key(idealStream).Group(idealGroup).Id(ids...).Build(),
			q.client.B().Xdel().Key(idealStream).Id(ids...).Build())
	}
}

func (q *rueidisQueue) ask(context.Context, uuid.UUID) error  { return errUnsupported }
func (q *rueidisQueue) park(context.Context, uuid.UUID) error { return errUnsupported }
