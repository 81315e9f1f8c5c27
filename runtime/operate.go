package smallage

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// cancelMarkTTL is how long a cancel is remembered.
const cancelMarkTTL = 24 * time.Hour

// Pause keeps every worker from starting further jobs of a queue, within about a second; running ones go on, and
// enqueuing is accepted. It lasts until Resume. It sets the queue's paused key.
func (c *Client) Pause(ctx context.Context, queue string) error {
	if !validName(queue) {
		return invalidf("queue name %q: use letters, digits, '.', '_' and '-'", shorten(queue))
	}
	if err := c.rdb.Set(ctx, c.keys.queue(queue).paused, "1", 0).Err(); err != nil {
		return fmt.Errorf("smallage: pause queue %s: %w", queue, err)
	}
	return nil
}

// Resume ends a Pause. Resuming a queue that is not paused does nothing.
func (c *Client) Resume(ctx context.Context, queue string) error {
	if !validName(queue) {
		return invalidf("queue name %q: use letters, digits, '.', '_' and '-'", shorten(queue))
	}
	if err := c.rdb.Del(ctx, c.keys.queue(queue).paused).Err(); err != nil {
		return fmt.Errorf("smallage: resume queue %s: %w", queue, err)
	}
	return nil
}

// Paused reports whether a queue is paused.
func (c *Client) Paused(ctx context.Context, queue string) (bool, error) {
	if !validName(queue) {
		return false, invalidf("queue name %q: use letters, digits, '.', '_' and '-'", shorten(queue))
	}
	n, err := c.rdb.Exists(ctx, c.keys.queue(queue).paused).Result()
	if err != nil {
		return false, fmt.Errorf("smallage: look at queue %s: %w", queue, err)
	}
	return n == 1, nil
}

// Cancel ends a job that has not started, with the outcome cancelled, and cancels the context of one that runs, within
// about a second, with the cause ErrCancelled; a handler that then returns nil has succeeded all the same. It never
// undoes a job that has ended. The mark is kept for a day, in every queue of the namespace: a job that has not come up
// by then runs. nil says that the mark is set, not that there is such a job.
func (c *Client) Cancel(ctx context.Context, id JobID) error {
	if id.IsZero() {
		return invalidf("job id: it is zero; use the id that enqueuing returned")
	}
	queues, err := c.Dead().queues(ctx, "")
	if err != nil {
		return err
	}
	calls := make([]*scriptCall, len(queues))
	for i, queue := range queues {
		k := c.keys.queue(queue)
		calls[i] = newCall(cancelScript, []string{k.cancel, k.delayed, k.stream}, id.String(), cancelMarkTTL.Milliseconds())
	}
	if len(calls) == 0 {
		return nil
	}
	runScripts(ctx, c.rdb, calls)
	if err := firstError(calls); err != nil {
		return fmt.Errorf("smallage: cancel job %s: %w", id, err)
	}
	return nil
}

// ErrCancelled is the cause of a handler's cancelled context where its job was cancelled by id.
var ErrCancelled = errors.New("smallage: job cancelled")

// noteCancelled takes a queue's new marks over: running jobs are cancelled, and the others remembered.
func (s *session) noteCancelled(q *queueState, marks []redis.Z) {
	for _, z := range marks {
		text, _ := z.Member.(string)
		id, err := ParseJobID(text)
		if err != nil {
			continue
		}
		s.hold.noteCancelled(q, id, strconv.FormatFloat(z.Score, 'f', 0, 64))
	}
}

// cancelled ends a job that was cancelled before it started, and reports whether it was. What the worker remembers is
// checked again: a replay lifts the mark.
func (s *session) cancelled(d *delivery) bool {
	if !s.hold.maybeCancelled(d) {
		return false
	}
	for {
		err := s.rdb.ZScore(s.base, d.queue.keys.cancel, d.env.id.String()).Err()
		switch {
		case err == nil:
			switch done, ok := s.isDone(d); {
			case !ok:
			case done: // it never undoes a job that has ended
				s.endings.already(d)
			default:
				s.endCancelled(d, d.env.attempt-1, d.env.history)
			}
			return true
		case isNilReply(err):
			s.hold.notCancelled(d)
			return false
		case !s.holdOn(d, err):
			return true
		}
	}
}

func (s *session) endCancelled(d *delivery, runs int, history string) {
	s.endings.end(d, &verdict{Status: StatusCancelled, Error: "cancelled by id", Runs: runs, History: history}, nil)
}
