package smallage_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/smallage/smallage/internal/redistest"
	smallage "github.com/smallage/smallage/runtime"
)

// throughProxy returns a client of the bench's namespace whose connections the proxy can break.
func (b *bench) throughProxy() (*smallage.Client, *redistest.Proxy) {
	b.t.Helper()
	proxy := redistest.NewProxy(b.t, redistest.Shared(b.t).Addr())
	rdb := redis.NewClient(&redis.Options{Addr: proxy.Addr()})
	b.t.Cleanup(func() { _ = rdb.Close() })
	client, err := smallage.NewClient(rdb, smallage.ClientConfig{Namespace: b.ns})
	require.NoError(b.t, err)
	b.t.Cleanup(func() { _ = client.Close() })
	return client, proxy
}

// idOf is the id of the job in a stream entry.
func idOf(e redis.XMessage) string {
	return strings.Split(e.Values["job"].(string), " ")[1]
}

// stored counts the entries of each job, in the stream and in the delayed set.
func (b *bench) stored(queue string) map[string]int {
	b.t.Helper()
	ctx := context.Background()
	count := map[string]int{}
	entries, err := b.rdb.XRange(ctx, b.key(queue, "stream"), "-", "+").Result()
	require.NoError(b.t, err)
	for _, e := range entries {
		if _, job := e.Values["job"]; job {
			count[idOf(e)]++
		}
	}
	delayed, err := b.rdb.ZRange(ctx, b.key(queue, "delayed"), 0, -1).Result()
	require.NoError(b.t, err)
	for _, id := range delayed {
		count[id]++
	}
	return count
}

func TestALostReplyLeavesAtMostOneEntryAndTheCallerKnows(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]smallage.Option[textArgs]{
		"at once": nil, "delayed": {echoWith.Delay(time.Hour)}, "expiring": {echoWith.ExpiresIn(time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			client, proxy := b.throughProxy()
			ctx := context.Background()
			_, err := echo.Enqueue(ctx, client, textArgs{"warm"}, opts)
			require.NoError(t, err)
			proxy.DropRepliesTo("test.Echo")
			id, err := echo.Enqueue(ctx, client, textArgs{"x"}, opts)
			require.ErrorIs(t, err, smallage.ErrUnconfirmed)
			require.False(t, id.IsZero(), "the id is returned beside the error")
			require.Contains(t, err.Error(), id.String())
			require.Equal(t, 1, b.stored("echo")[id.String()], "it was sent once, and arrived")
			proxy.DropRepliesTo("")
			_, err = echo.Enqueue(ctx, client, textArgs{"y"}, opts)
			require.NoError(t, err)
			require.Len(t, b.stored("echo"), 3)
		})
	}
}

func TestAnIDThatTheCallerBringsIsStoredOnceHoweverManyRepliesAreLost(t *testing.T) {
	t.Parallel()
	for name, more := range map[string][]smallage.Option[textArgs]{"at once": nil, "delayed": {echoWith.Delay(time.Hour)}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			client, proxy := b.throughProxy()
			ctx := context.Background()
			id, err := smallage.NewJobID()
			require.NoError(t, err)
			opts := append(more, echoWith.ID(id))
			proxy.DropRepliesTo("test.Echo")
			for range 3 {
				got, err := echo.Enqueue(ctx, client, textArgs{"x"}, opts)
				require.ErrorIs(t, err, smallage.ErrUnconfirmed)
				require.Equal(t, id, got)
			}
			proxy.DropRepliesTo("")
			for range 2 {
				got, err := echo.Enqueue(ctx, client, textArgs{"x"}, opts)
				require.NoError(t, err)
				require.Equal(t, id, got)
			}
			require.Equal(t, map[string]int{id.String(): 1}, b.stored("echo"))
		})
	}
}

func TestConnectionsCutAnywhereInAReplyNeverEnqueueTwice(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	client, proxy := b.throughProxy()
	ctx := context.Background()
	rng := rand.New(rand.NewPCG(1, 2))
	confirmed, unsure, brought := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for i := range 300 {
		if i%2 == 0 {
			proxy.CutAfterBytes(rng.IntN(120))
		}
		var opts []smallage.Option[textArgs]
		if i%3 == 0 {
			opts = append(opts, echoWith.Delay(time.Hour))
		}
		if i%5 == 0 {
			id, err := smallage.NewJobID()
			require.NoError(t, err)
			opts = append(opts, echoWith.ID(id))
			for tries := 0; ; tries++ {
				if _, err = echo.Enqueue(ctx, client, textArgs{fmt.Sprint(i)}, opts); err == nil {
					break
				}
				require.Less(t, tries, 50, err)
			}
			brought[id.String()] = true
			continue
		}
		id, err := echo.Enqueue(ctx, client, textArgs{fmt.Sprint(i)}, opts)
		switch {
		case err == nil:
			confirmed[id.String()] = true
		case errors.Is(err, smallage.ErrUnconfirmed):
			unsure[id.String()] = true
		default:
			require.True(t, id.IsZero(), "an id beside %v", err)
		}
	}
	require.NotEmpty(t, unsure, "no reply was lost: the test proves nothing")
	for id, n := range b.stored("echo") {
		require.Equal(t, 1, n, "job %s", id)
		require.True(t, confirmed[id] || unsure[id] || brought[id], "job %s is stored, and its caller was told that it is not", id)
		delete(confirmed, id)
		delete(brought, id)
	}
	require.Empty(t, confirmed, "confirmed, and not stored")
	require.Empty(t, brought, "brought until confirmed, and not stored")
}
