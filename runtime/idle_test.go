package smallage_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/smallage/smallage/internal/redistest"
	smallage "github.com/smallage/smallage/runtime"
)

// sentByClients counts the commands that clients sent, without those that ran inside scripts.
func sentByClients(t *testing.T, rdb redis.UniversalClient) int {
	t.Helper()
	info, err := rdb.Info(context.Background(), "commandstats").Result()
	require.NoError(t, err)
	n := 0
	for line := range strings.Lines(info) {
		name, rest, _ := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		switch name {
		case "xreadgroup", "evalsha", "eval": // a worker's own; what its scripts call has other names
			calls, _, _ := strings.Cut(rest, ",")
			k, err := strconv.Atoi(calls)
			require.NoError(t, err)
			n += k
		}
	}
	return n
}

func TestAnIdleWorkerSendsAtMostTwoCommandsASecond(t *testing.T) {
	t.Parallel()
	b := newBenchOn(t, redistest.Start(t).Client())
	b.work(smallage.WorkerConfig{}, echoTable(func(context.Context, string) ([]byte, error) { return nil, nil }))
	eventually(t, func() bool { return b.rdb.Exists(context.Background(), b.key("echo", "workers")).Val() == 1 }, "it has begun")
	before := sentByClients(t, b.rdb)
	begin := time.Now()
	time.Sleep(4 * time.Second) // idleness is what is measured
	sent := sentByClients(t, b.rdb) - before
	require.LessOrEqual(t, float64(sent), 2*time.Since(begin).Seconds()+1)
}

func TestADelayedJobWakesASleepingWorkerInTime(t *testing.T) {
	t.Parallel()
	b := newBenchOn(t, redistest.Start(t).Client())
	ran := make(chan time.Time, 1)
	b.work(smallage.WorkerConfig{}, echoTable(func(context.Context, string) ([]byte, error) {
		ran <- time.Now()
		return nil, nil
	}))
	ctx := context.Background()
	var late []time.Duration
	for range 20 {
		due := time.Now().Add(50 * time.Millisecond)
		_, err := echo.Enqueue(ctx, b.client, textArgs{"x"}, []smallage.Option[textArgs]{echoWith.Delay(50 * time.Millisecond)})
		require.NoError(t, err)
		late = append(late, (<-ran).Sub(due))
	}
	slices.Sort(late)
	t.Logf("after a delay of 50ms: median %v late, most %v", late[len(late)/2], late[len(late)-1])
	require.Less(t, late[len(late)/2], 300*time.Millisecond, "a worker that looked only by itself would be half a second late")
	eventually(t, func() bool { return b.rdb.XLen(ctx, b.key("echo", "stream")).Val() == 0 }, "wake entries are gone")
}
