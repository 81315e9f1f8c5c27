package smallage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// Result looks once for the outcome of a job. Errors: ErrNoResult, ErrNoResultRequested, ErrInvalid for the zero id, ctx's
// error, or Redis's. It reads the job's result key, on the master also where the Redis client reads from replicas.
func (c *Client) Result(ctx context.Context, id JobID) (Result, error) {
	if err := c.mayWait(ctx, id); err != nil {
		return Result{}, err
	}
	results, err := c.lookOnce(ctx, []JobID{id})
	switch {
	case err != nil:
		return Result{}, err
	case results[0].Missing():
		return Result{}, c.noResult(id)
	}
	return results[0], nil
}

// mayWait refuses what no look could answer.
func (c *Client) mayWait(ctx context.Context, ids ...JobID) error {
	if c == nil || c.rdb == nil {
		return invalidf("client: make one with NewClient")
	}
	for i, id := range ids {
		if id.IsZero() && len(ids) > 1 {
			return invalidf("job id %d of %d: it is zero; use the ids that enqueuing returned", i+1, len(ids))
		}
		if id.IsZero() {
			return invalidf("job id: it is zero; use the id that enqueuing returned")
		}
	}
	return ctx.Err()
}

func (c *Client) noResult(id JobID) error {
	if c.silent.has(id) {
		return fmt.Errorf("job %s: %w", id, ErrNoResultRequested)
	}
	return fmt.Errorf("job %s: %w", id, ErrNoResult)
}

// leastLook is what the first look of a very short wait is given: less would often end before any answer can come, and
// find less than a wait of 0, which has the time that one look takes.
const leastLook = 10 * time.Millisecond

// Wait blocks until the job has an outcome, ctx ends, or the timeout has passed, each to the millisecond; a timeout of 0 or
// less looks once. It does not poll: it blocks on the job's token or is told by a notice, and looks again only every few
// seconds, in case one was lost. However many waits there are, they take at most MaxWaitConns connections apart from the
// Redis client's pool. While Redis is away Wait goes on trying; an outcome written before or meanwhile is found afterwards.
//
// Errors: ErrNoResult after the timeout (it wraps Redis's error where that was the reason), ErrNoResultRequested,
// ErrInvalid for the zero id, ctx's error, or Redis's where it refuses to answer this user. It reads the job's result and
// token keys and subscribes to its notice.
func (c *Client) Wait(ctx context.Context, id JobID, timeout time.Duration) (Result, error) {
	if err := c.mayWait(ctx, id); err != nil {
		return Result{}, err
	}
	var res Result
	err := c.await(ctx, []JobID{id}, timeout, func(found Result) bool {
		res = found
		return false
	})
	switch {
	case err != nil:
		return Result{}, err
	case !res.Missing():
		return res, nil
	case timeout <= 0 || c.silent.has(id):
		return Result{}, c.noResult(id)
	}
	return Result{}, fmt.Errorf("job %s: %w within %v", id, ErrNoResult, timeout)
}

// await passes outcomes to take as they come, until take wants no more, all have come, or the time is over: then it
// returns nil. A timeout of 0 or less looks once.
func (c *Client) await(ctx context.Context, ids []JobID, timeout time.Duration, take func(Result) bool) error {
	deadline := time.Now().Add(timeout)
	once, rest := ids, []JobID(nil)
	if timeout >= leastLook {
		once = nil
		for _, id := range ids {
			if c.silent.has(id) {
				once = append(once, id)
			} else {
				rest = append(rest, id)
			}
		}
	}
	if len(once) > 0 {
		first, cancel := ctx, context.CancelFunc(func() {})
		if timeout > 0 {
			first, cancel = context.WithTimeout(ctx, max(timeout, leastLook))
		}
		results, err := c.lookOnce(first, once)
		cancel()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && timeout <= 0:
			return err
		}
		for i, id := range once {
			switch {
			case err == nil && !results[i].Missing():
				if !take(results[i]) {
					return nil
				}
			case timeout < leastLook && !c.silent.has(id):
				rest = append(rest, id)
			}
		}
	}
	left := time.Until(deadline)
	if left <= 0 || len(rest) == 0 {
		return nil
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	w := c.waits.join(rest)
	defer c.waits.leave(w)
	for range rest {
		select {
		case told := <-w.ready:
			if told.err != nil {
				return told.err
			}
			res := told.res
			res.Value = bytes.Clone(res.Value) // each waiter may change its own
			if !take(res) {
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			if err := c.waits.trouble(w); err != nil {
				return fmt.Errorf("%w: the timeout of %v passed while Redis did not answer: %w", ErrNoResult, timeout, err)
			}
			return nil
		}
	}
	return nil
}

// lookOnce reads outcomes, and returns when ctx ends, which go-redis may not.
func (c *Client) lookOnce(ctx context.Context, ids []JobID) ([]Result, error) {
	type answer struct {
		results []Result
		err     error
	}
	looked := make(chan answer, 1)
	go func() {
		var a answer
		for chunk := range slices.Chunk(ids, looksAtOnce) {
			results, errs := c.lookUp(ctx, chunk)
			a.results = append(a.results, results...)
			if a.err = errors.Join(errs...); a.err != nil {
				break
			}
		}
		looked <- a
	}()
	select {
	case a := <-looked:
		return a.results, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// lookUp reads the outcomes of jobs in one flush. A zero Result beside a nil error: there is none.
func (c *Client) lookUp(ctx context.Context, ids []JobID) ([]Result, []error) {
	results, errs := make([]Result, len(ids)), make([]error, len(ids))
	pipe := c.rdb.Pipeline()
	replies := make([]func() (map[string]string, error), len(ids))
	for i, id := range ids {
		key, _, _ := c.keys.outcome(id)
		if readsFromReplicas(c.rdb) {
			cmd := pipe.Eval(ctx, lookScript.source, []string{key})
			replies[i] = func() (map[string]string, error) { return fieldMap(cmd.Result()) }
		} else {
			replies[i] = pipe.HGetAll(ctx, key).Result
		}
	}
	_, _ = pipe.Exec(ctx) // each command holds its own error
	for i, id := range ids {
		fields, err := replies[i]()
		if err != nil {
			errs[i] = fmt.Errorf("smallage: look up the result of job %s: %w", id, err)
			continue
		}
		results[i] = decodeResult(id, fields)
	}
	return results, errs
}

func fieldMap(reply any, err error) (map[string]string, error) {
	list := replyList(reply)
	fields := make(map[string]string, len(list)/2)
	for i := 0; i+1 < len(list); i += 2 {
		fields[replyText(list[i])] = replyText(list[i+1])
	}
	return fields, err
}

// readsFromReplicas holds for a client whose reads may miss what its writes have just done.
func readsFromReplicas(rdb redis.UniversalClient) bool {
	cluster, ok := rdb.(*redis.ClusterClient)
	if !ok {
		return false
	}
	opt := cluster.Options()
	return opt.ReadOnly || opt.RouteByLatency || opt.RouteRandomly
}

// refused holds for replies that no later try will change: the user may not read the key, or something else is in it.
func refused(err error) bool {
	for _, prefix := range []string{"NOPERM", "NOAUTH", "WRONGPASS", "WRONGTYPE"} {
		if redis.HasErrorPrefix(err, prefix) {
			return true
		}
	}
	return false
}
