package crashtest_test

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/smallage/smallage/internal/crashtest"
	"github.com/smallage/smallage/internal/redistest"
)

func TestAProcessThatIsFrozenIsExcusedOnceForEachRun(t *testing.T) {
	t.Parallel()
	ctx, ns := context.Background(), redistest.Namespace(t)
	rdb := redistest.Shared(t).Client()
	stream := ns + ":{q:" + crashtest.Queue + "}:stream"
	require.NoError(t, rdb.XGroupCreateMkStream(ctx, stream, "workers", "0").Err())
	entry, err := rdb.XAdd(ctx, &redis.XAddArgs{Stream: stream, Values: []string{"job", "1 job 0 test.Task {}"}}).Result()
	require.NoError(t, err)
	require.NoError(t, rdb.XReadGroup(ctx, &redis.XReadGroupArgs{Group: "workers", Consumer: "p71-a", Streams: []string{stream, ">"}}).Err())
	w := crashtest.NewWitness(rdb, ns, t.TempDir())
	held := func(consumer string, delivery int) {
		require.NoError(t, rdb.Do(ctx, "XCLAIM", stream, "workers", consumer, 0, entry, "RETRYCOUNT", delivery, "JUSTID").Err())
	}

	require.NoError(t, w.Frozen(72), "it holds nothing")
	require.Zero(t, w.Excuses("job"))
	require.NoError(t, w.Frozen(71))
	require.NoError(t, w.Frozen(71), "while it runs the same run")
	require.Equal(t, 1, w.Excuses("job"))
	held("p72-b", 2)
	require.NoError(t, w.Frozen(71), "it has lost it")
	require.Equal(t, 1, w.Excuses("job"))
	require.NoError(t, w.Frozen(72))
	held("p71-a", 3)
	require.NoError(t, w.Frozen(71), "it runs it again")
	require.Equal(t, 3, w.Excuses("job"))
}
