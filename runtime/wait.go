package smallage

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Result looks once for the outcome of a job. Errors: ErrNoResult, ErrNoResultRequested, ctx's error, or Redis's.
// It reads the job's result key.
func (c *Client) Result(ctx context.Context, id JobID) (Result, error) {
	if c == nil || c.rdb == nil {
		return Result{}, invalidf("client: make one with NewClient")
	}
	res, err := c.look(ctx, id)
	if err != nil {
		return Result{}, err
	}
	if res.Status == "" {
		return Result{}, c.noResult(id)
	}
	return res, nil
}

func (c *Client) noResult(id JobID) error {
	if c.silent.has(id) {
		return fmt.Errorf("job %s: %w", id, ErrNoResultRequested)
	}
	return fmt.Errorf("job %s: %w", id, ErrNoResult)
}

// look returns the zero Result where there is no outcome.
func (c *Client) look(ctx context.Context, id JobID) (Result, error) {
	if id.IsZero() {
		return Result{}, invalidf("job id: it is zero; use the id that enqueuing returned")
	}
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	key, _ := c.keys.result(id)
	fields, err := c.rdb.HGetAll(ctx, key).Result()
	if err != nil {
		return Result{}, fmt.Errorf("smallage: look up the result of job %s: %w", id, err)
	}
	return decodeResult(id, fields), nil
}

func decodeResult(id JobID, fields map[string]string) Result {
	if fields["status"] == "" {
		return Result{}
	}
	res := Result{
		ID: id, Status: Status(fields["status"]), Error: fields["error"], Reason: Reason(fields["reason"]),
		Task: fields["task"], Attempts: int(atoi(fields["attempts"])), FinishedAt: time.UnixMilli(atoi(fields["finished_at"])),
		DeathID: fields["death"], valueLost: fields["lost"] != "",
	}
	if value, ok := fields["value"]; ok {
		res.Value = []byte(value)
	}
	if owner := fields["owner"]; owner != "" {
		res.Owner, _ = ParseJobID(owner)
	}
	return res
}

// Wait blocks until the job has an outcome, ctx ends, or the timeout has passed; a timeout of 0 or less looks once. It
// does not poll: it blocks on the job's token, which it puts back in the same step, so that all who wait get it.
// Errors: ErrNoResult after the timeout, ErrNoResultRequested, ctx's error. While Redis is away Wait goes on trying; an
// outcome written before or meanwhile is found afterwards. It reads the job's result and token keys.
func (c *Client) Wait(ctx context.Context, id JobID, timeout time.Duration) (Result, error) {
	if c == nil || c.rdb == nil {
		return Result{}, invalidf("client: make one with NewClient")
	}
	deadline := time.Now().Add(timeout)
	var pause pauser
	var trouble error
	for {
		res, err := c.look(ctx, id)
		switch {
		case err == nil && res.Status != "":
			return res, nil
		case errors.Is(err, ErrInvalid), ctx.Err() != nil, timeout <= 0 && err != nil:
			return Result{}, err
		case err == nil && c.silent.has(id):
			return Result{}, c.noResult(id)
		}
		trouble = err
		left := time.Until(deadline)
		if left <= 0 {
			break
		}
		if err == nil {
			err = c.waits.block(ctx, id, left)
		}
		if ctx.Err() != nil {
			return Result{}, ctx.Err()
		}
		if err != nil {
			trouble = err
			bounded, cancel := context.WithDeadline(ctx, deadline)
			pause.wait(bounded)
			cancel()
		} else {
			pause.reset()
		}
	}
	if trouble != nil {
		return Result{}, fmt.Errorf("job %s: %w: the timeout of %v passed while Redis did not answer: %w", id, ErrNoResult, timeout, trouble)
	}
	return Result{}, fmt.Errorf("job %s: %w within %v", id, ErrNoResult, timeout)
}

// waits blocks on tokens, on connections of its own.
type waits struct {
	client *Client
	slots  chan struct{}

	mu     sync.Mutex
	rdb    redis.UniversalClient // made at the first wait
	end    func() error
	closed bool
}

// waitSlice bounds one blocking command: it does not end with its caller's context, and holds a connection until then.
const waitSlice = time.Second

func newWaits(c *Client) *waits {
	return &waits{client: c, slots: make(chan struct{}, c.cfg.MaxWaitConns)}
}

var errClosed = errors.New("smallage: the client is closed")

func (w *waits) connection() (redis.UniversalClient, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, errClosed
	}
	if w.rdb == nil {
		w.rdb, w.end = blockingClient(w.client.rdb, w.client.cfg.MaxWaitConns, waitSlice, nil)
	}
	return w.rdb, nil
}

func (w *waits) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	if w.end == nil {
		return nil
	}
	return w.end()
}

// block waits a while for a token: until there is one, ctx ends, left has passed, or the slice is over. The caller looks
// at the outcome after each.
func (w *waits) block(ctx context.Context, id JobID, left time.Duration) error {
	rdb, err := w.connection()
	if err != nil {
		return err
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case w.slots <- struct{}{}:
	case <-ctx.Done():
		return nil
	case <-timer.C:
		return nil
	}
	_, token := w.client.keys.result(id)
	slice := max(min(left, waitSlice), time.Millisecond)
	taken := make(chan error, 1)
	go func() {
		defer func() { <-w.slots }()
		// BLMOVE onto itself takes the token and puts it back in one step: no waiter can die in between, and the list
		// keeps its TTL. A raw command, since go-redis rounds timeouts up to whole seconds.
		err := rdb.Do(context.WithoutCancel(ctx), "BLMOVE", token, token, "LEFT", "LEFT", fmt.Sprintf("%.3f", slice.Seconds())).Err()
		if isNilReply(err) {
			err = nil
		}
		taken <- err
	}()
	select {
	case err := <-taken:
		return err
	case <-ctx.Done():
		return nil
	case <-timer.C:
		return nil
	}
}
