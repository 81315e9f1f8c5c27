package smallage_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/smallage/smallage/internal/redistest"
	smallage "github.com/smallage/smallage/runtime"
)

// skewedServer is a program that runs a server whose wall clock is wrong by so many seconds. To its clients that looks as
// it looks to it where theirs are wrong.
func skewedServer(t *testing.T, seconds int) string {
	t.Helper()
	dir := t.TempDir()
	library := filepath.Join(dir, "clock.so")
	out, err := exec.Command("cc", "-shared", "-fPIC", "-O1", "-o", library, "testdata/skew/clock.c").CombinedOutput()
	require.NoError(t, err, "%s", out)
	server := os.Getenv("SMALLAGE_REDIS_SERVER")
	if server == "" {
		server = "redis-server"
	}
	program := filepath.Join(dir, "skewed-server")
	script := fmt.Sprintf("#!/bin/sh\nLD_PRELOAD=%s SKEW_SECONDS=%d exec %s \"$@\"\n", library, seconds, server)
	require.NoError(t, os.WriteFile(program, []byte(script), 0o755))
	return program
}

func TestClocksThatDisagreeByAnHourShiftNothing(t *testing.T) {
	if _, err := exec.LookPath("cc"); err != nil || runtime.GOOS != "linux" {
		t.Skip("only on Linux, and with a C compiler as the race detector needs it, can a server be given a clock of its own")
	}
	for _, seconds := range []int{-3600, 3600} {
		t.Run(fmt.Sprint(time.Duration(seconds)*time.Second), func(t *testing.T) {
			t.Setenv("SMALLAGE_REDIS_SERVER", skewedServer(t, seconds))
			b := newBenchOn(t, redistest.Start(t).Client())
			ctx := context.Background()
			now, err := b.rdb.Time(ctx).Result()
			require.NoError(t, err)
			require.Greater(t, time.Until(now).Abs(), 59*time.Minute, "the clocks agree: the test proves nothing")

			const lease = 1500 * time.Millisecond
			var failed atomic.Bool
			ran := make(chan time.Time, 10)
			task := smallage.Task[textArgs]{Name: "test.Clock", Queue: "clock", Backoff: 300 * time.Millisecond, DedupTTL: time.Hour}
			stop := b.work(smallage.WorkerConfig{Lease: lease}, smallage.NewTable(smallage.Handle(&task, func(ctx context.Context, a textArgs) error {
				ran <- time.Now()
				switch a.Text {
				case "fail once":
					if failed.CompareAndSwap(false, true) {
						return errors.New("first run fails")
					}
				case "long":
					time.Sleep(3 * lease)
					return ctx.Err()
				}
				return nil
			})))
			asked := func(opts ...smallage.Option[textArgs]) []smallage.Option[textArgs] {
				return append(opts, echoWith.ResultTTL(time.Minute))
			}
			finish := func(text string, opts ...smallage.Option[textArgs]) smallage.Result {
				t.Helper()
				id, err := task.Enqueue(ctx, b.client, textArgs{text}, asked(opts...))
				require.NoError(t, err)
				res, err := b.client.Wait(ctx, id, 20*time.Second)
				require.NoError(t, err)
				now, err := b.rdb.Time(ctx).Result()
				require.NoError(t, err)
				require.Less(t, res.FinishedAt.Sub(now).Abs(), time.Minute, "outcomes carry Redis's time")
				return res
			}
			// A delay is one, whatever the clocks say.
			begin := time.Now()
			require.True(t, finish("delayed", echoWith.Delay(400*time.Millisecond)).OK())
			requireAbout(t, 400*time.Millisecond, (<-ran).Sub(begin))
			// So is the backoff.
			require.True(t, finish("fail once").OK())
			first := <-ran
			requireAbout(t, 240*time.Millisecond, (<-ran).Sub(first)) // less a fifth, the jitter
			// An absolute time is Redis's.
			begin = time.Now()
			now, err = b.rdb.Time(ctx).Result()
			require.NoError(t, err)
			require.True(t, finish("at", echoWith.At(now.Add(400*time.Millisecond).In(time.FixedZone("far east", 49500)))).OK())
			requireAbout(t, 400*time.Millisecond, (<-ran).Sub(begin))
			// What is in time does not expire, and what is late does.
			require.True(t, finish("in time", echoWith.ExpiresIn(10*time.Second)).OK())
			<-ran
			// A long job is not taken over, its claim and its outcome live as long as they should.
			require.True(t, finish("long", echoWith.Dedup("long")).OK())
			<-ran
			require.Empty(t, ran, "it ran once")
			ttl := b.rdb.PTTL(ctx, b.ns+":{d:long}").Val()
			require.InDelta(t, time.Hour.Seconds(), ttl.Seconds(), 60)
			require.Equal(t, smallage.StatusDuplicate, finish("again", echoWith.Dedup("long")).Status)
			stop()
			id, err := task.Enqueue(ctx, b.client, textArgs{"late"}, asked(echoWith.ExpiresIn(50*time.Millisecond)))
			require.NoError(t, err)
			time.Sleep(100 * time.Millisecond) // until the first has expired
			entries, err := b.rdb.XRange(ctx, b.key("clock", "stream"), "-", "+").Result()
			require.NoError(t, err)
			require.Len(t, entries, 1)
			stamp, _, _ := strings.Cut(entries[0].ID, "-")
			ms, err := strconv.ParseInt(stamp, 10, 64)
			require.NoError(t, err)
			require.Less(t, time.UnixMilli(ms).Sub(now).Abs(), time.Minute, "entries carry Redis's time")
			nothing := smallage.NewTable(smallage.Handle(&task, func(context.Context, textArgs) error { return nil }))
			stop = b.work(smallage.WorkerConfig{Lease: lease}, nothing)
			res, err := b.client.Wait(ctx, id, 20*time.Second)
			require.NoError(t, err)
			require.Equal(t, smallage.StatusExpired, res.Status)
			stop()
			// What a dead worker holds is taken over after the lease, no sooner and not an hour later.
			id, err = task.Enqueue(ctx, b.client, textArgs{"lost"}, asked())
			require.NoError(t, err)
			begin = time.Now()
			_, err = b.rdb.XReadGroup(ctx, &redis.XReadGroupArgs{Group: "workers", Consumer: "dead", Streams: []string{b.key("clock", "stream"), ">"}}).Result()
			require.NoError(t, err)
			b.work(smallage.WorkerConfig{Lease: lease}, nothing)
			res, err = b.client.Wait(ctx, id, 20*time.Second)
			require.NoError(t, err)
			require.True(t, res.OK(), res)
			require.GreaterOrEqual(t, time.Since(begin), lease)
		})
	}
}

// requireAbout tells a wait of the clock's right length from one that is off by what the clocks differ by.
func requireAbout(t *testing.T, want, got time.Duration) {
	t.Helper()
	require.Greater(t, got, want-10*time.Millisecond)
	require.Less(t, got, want+5*time.Second)
}
