package smallage_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	smallage "github.com/smallage/smallage/runtime"
)

// loseWithWorkers has the entries that are in the stream delivered to a worker that is dead, and lost so often.
func (b *bench) loseWithWorkers(queue string, times int) {
	b.t.Helper()
	ctx := context.Background()
	stream := b.key(queue, "stream")
	require.NoError(b.t, b.rdb.XGroupCreateMkStream(ctx, stream, "workers", "0").Err())
	streams, err := b.rdb.XReadGroup(ctx, &redis.XReadGroupArgs{Group: "workers", Consumer: "dead", Streams: []string{stream, ">"}}).Result()
	require.NoError(b.t, err)
	for _, m := range streams[0].Messages {
		// As the takeover leaves it: XCLAIM sets the idle time and the count of deliveries.
		require.NoError(b.t, b.rdb.Do(ctx, "XCLAIM", stream, "workers", "dead", 0, m.ID, "IDLE", 3_600_000, "RETRYCOUNT", times, "JUSTID").Err())
	}
}

func TestAJobThatWasLostTwiceStartsAlthoughThereIsAlwaysOtherWork(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	for range 3 {
		_, err := echo.Enqueue(ctx, b.client, textArgs{"suspect"}, nil)
		require.NoError(t, err)
	}
	b.loseWithWorkers("echo", 3)
	const others = 3000
	for range others {
		_, err := echo.Enqueue(ctx, b.client, textArgs{"other"}, nil)
		require.NoError(t, err)
	}
	var suspects, ran atomic.Int64
	b.work(smallage.WorkerConfig{Concurrency: 4}, echoTable(func(ctx context.Context, text string) ([]byte, error) {
		if text == "suspect" {
			info, _ := smallage.InfoFromContext(ctx)
			require.Equal(t, 4, info.Delivery)
			suspects.Add(1)
		} else {
			ran.Add(1)
		}
		time.Sleep(10 * time.Millisecond) // so that the others take seven seconds at least
		return nil, nil
	}))
	eventually(t, func() bool { return suspects.Load() == 3 }, "the suspects run")
	require.Less(t, ran.Load(), int64(others), "and need not wait until all other work is done")
	t.Logf("%d of %d others had run by then", ran.Load(), others)
}

func TestAHundredJobsLostTwiceDoNotHoldUpWhatIsHandedBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	for range 100 {
		_, err := echo.Enqueue(ctx, b.client, textArgs{"suspect"}, nil)
		require.NoError(t, err)
	}
	b.loseWithWorkers("echo", 3)
	stop := make(chan struct{})
	blocking := func(ctx context.Context, text string) ([]byte, error) {
		if text == "suspect" {
			<-stop // so that no second one is taken
		}
		return nil, nil
	}
	b.work(smallage.WorkerConfig{Concurrency: 2}, echoTable(blocking))
	eventually(t, func() bool {
		return b.rdb.XPending(ctx, b.key("echo", "stream"), "workers").Val().Consumers["released"] == 99
	}, "they wait, one runs")
	id, err := echo.Enqueue(ctx, b.client, textArgs{"innocent"}, []smallage.Option[textArgs]{echoWith.ResultTTL(time.Minute)})
	require.NoError(t, err)
	_, err = b.client.Wait(ctx, id, 10*time.Second)
	require.NoError(t, err)

	// Handed back behind the hundred by a worker that is gone.
	id, err = echo.Enqueue(ctx, b.client, textArgs{"innocent"}, []smallage.Option[textArgs]{echoWith.ResultTTL(time.Minute), echoWith.Queue("other")})
	require.NoError(t, err)
	entries, err := b.rdb.XRange(ctx, b.key("other", "stream"), "-", "+").Result()
	require.NoError(t, err)
	pipe := b.rdb.TxPipeline()
	entry := pipe.XAdd(ctx, &redis.XAddArgs{Stream: b.key("echo", "stream"), Values: entries[0].Values})
	pipe.XReadGroup(ctx, &redis.XReadGroupArgs{Group: "workers", Consumer: "leaving", Streams: []string{b.key("echo", "stream"), ">"}, Count: 1})
	_, err = pipe.Exec(ctx)
	require.NoError(t, err)
	require.NoError(t, b.rdb.Do(ctx, "XCLAIM", b.key("echo", "stream"), "workers", "released", 0, entry.Val(), "RETRYCOUNT", 1, "JUSTID").Err())
	_, err = b.client.Wait(ctx, id, 10*time.Second)
	require.NoError(t, err, "an entry that was handed back is not taken")
	close(stop)
	eventually(t, func() bool { return b.rdb.XLen(ctx, b.key("echo", "stream")).Val() == 0 }, "all run")
}
