package smallage

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/smallage/smallage/internal/redistest"
)

func TestCallsThatShareAFlushGetTheirOwnReplies(t *testing.T) {
	t.Parallel()
	c := newCoalescer(context.Background(), redistest.Shared(t).Client())
	var callers sync.WaitGroup
	for caller := range 50 {
		callers.Go(func() {
			for i := range 40 {
				text := fmt.Sprint(caller, " ", i)
				reply, err := c.run(plainCall("ECHO", text))
				if err != nil || reply != text {
					t.Errorf("sent %q, got %v, %v", text, reply, err)
				}
			}
		})
	}
	callers.Wait()
	c.close()
	require.Empty(t, c.waiting)
	require.Zero(t, c.busy)
}

// leavingHook ends the goroutine of whoever sends, as a test's FailNow in a hook would.
type leavingHook struct{}

func (leavingHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (leavingHook) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(context.Context, redis.Cmder) error {
		runtime.Goexit()
		return nil
	}
}

func (leavingHook) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(context.Context, []redis.Cmder) error {
		runtime.Goexit()
		return nil
	}
}

func TestAFlushThatBreaksOffTellsAllWhoShareItAndHoldsUpNobody(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client()
	rdb.AddHook(leavingHook{})
	c := newCoalescer(context.Background(), rdb)
	c.join(&pendingCall{call: plainCall("PING"), answered: make(chan struct{}, 1)}) // this one gathers
	errs := make(chan error, 10)
	for range cap(errs) {
		go func() {
			_, err := c.run(plainCall("PING"))
			errs <- err
		}()
	}
	require.Eventually(t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.waiting) == 1+cap(errs)
	}, time.Minute, time.Millisecond)
	go c.sendGathered()
	for range cap(errs) {
		require.ErrorIs(t, <-errs, errFlushBroken)
	}
	c.close()
	require.Zero(t, c.busy)
}
