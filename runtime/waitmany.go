package smallage

import (
	"context"
	"fmt"
	"time"
)

// WaitAll waits for the outcomes of several jobs, in one wait however many there are. It returns one Result per id, in
// the order of the ids: those without an outcome are Missing and carry their ID alone. A timeout of 0 or less looks once.
// An id may be named more than once; no ids are no results.
//
// Beside an error the results are valid as far as they came: where any is missing the error matches ErrNoResult (and
// ErrNoResultRequested where this client enqueued every missing job without ResultTTL), or is ctx's. Other errors, and keys,
// as for Wait.
func (c *Client) WaitAll(ctx context.Context, ids []JobID, timeout time.Duration) ([]Result, error) {
	if err := c.mayWait(ctx, ids...); err != nil {
		return nil, err
	}
	found := make(map[JobID]Result, len(ids))
	asked := distinct(ids)
	err := c.await(ctx, asked, timeout, func(res Result) bool {
		found[res.ID] = res
		return len(found) < len(asked)
	})
	results := make([]Result, len(ids))
	missing, silent := 0, 0
	for i, id := range ids {
		res, ok := found[id]
		if !ok {
			res = Result{ID: id}
			missing++
			if c.silent.has(id) {
				silent++
			}
		}
		results[i] = res
	}
	switch {
	case err != nil:
		return results, err
	case missing > 0 && silent == missing:
		return results, fmt.Errorf("%d of %d jobs: %w", missing, len(ids), ErrNoResultRequested)
	case missing > 0:
		return results, fmt.Errorf("%d of %d jobs: %w within %v", missing, len(ids), ErrNoResult, timeout)
	}
	return results, nil
}

// WaitAny waits for the first outcome among several jobs; Result.ID says whose it is. Where several are there already, the
// one that comes first in ids is as likely as any. Errors and keys as for Wait; no ids are an error that matches ErrInvalid.
func (c *Client) WaitAny(ctx context.Context, ids []JobID, timeout time.Duration) (Result, error) {
	if err := c.mayWait(ctx, ids...); err != nil {
		return Result{}, err
	}
	if len(ids) == 0 {
		return Result{}, invalidf("WaitAny: there is no id to wait for")
	}
	var first Result
	asked := distinct(ids)
	err := c.await(ctx, asked, timeout, func(res Result) bool {
		first = res
		return false
	})
	switch {
	case err != nil:
		return Result{}, err
	case !first.Missing():
		return first, nil
	}
	for _, id := range asked {
		if !c.silent.has(id) {
			return Result{}, fmt.Errorf("%d jobs: %w within %v", len(asked), ErrNoResult, timeout)
		}
	}
	return Result{}, fmt.Errorf("%d jobs: %w", len(asked), ErrNoResultRequested)
}

// distinct leaves out ids that were there before.
func distinct(ids []JobID) []JobID {
	seen := make(map[JobID]struct{}, len(ids))
	once := make([]JobID, 0, len(ids))
	for _, id := range ids {
		if _, known := seen[id]; !known {
			seen[id] = struct{}{}
			once = append(once, id)
		}
	}
	return once
}
