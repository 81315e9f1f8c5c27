package smallage_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/smallage/smallage/internal/redistest"
	smallage "github.com/smallage/smallage/runtime"
)

func TestAWaitOutlivesARestartOfRedis(t *testing.T) {
	t.Parallel()
	for _, conns := range []int{1, 16} {
		for how, restart := range map[string]func(*redistest.Server){
			"in good order": (*redistest.Server).Restart, "by a crash": (*redistest.Server).Crash,
		} {
			t.Run(fmt.Sprintf("%s, %d connections", how, conns), func(t *testing.T) {
				t.Parallel()
				server := redistest.Start(t, redistest.AOF())
				b := newWaitBench(t, server.Client(), conns)
				after, before := mustID(t), mustID(t)
				waits := []chan waited{b.wait(t.Context(), after, 30*time.Second), b.wait(t.Context(), after, 30*time.Second)}
				eventually(t, func() bool { return listening(server.Client(), 1) }, "they listen")
				b.mustEnd(before, smallage.StatusOK, "value", "kept")
				restart(server)
				time.Sleep(300 * time.Millisecond)
				b2 := &waitBench{t: t, rdb: server.Client(), ns: b.ns}
				b2.mustEnd(after, smallage.StatusOK, "value", "v")
				ended := time.Now()
				for _, done := range waits {
					got := <-done
					require.NoError(t, got.err)
					require.Equal(t, "v", string(got.res.Value))
				}
				require.Less(t, time.Since(ended), 10*time.Second)
				res, err := b.client.Wait(t.Context(), before, 10*time.Second)
				require.NoError(t, err)
				require.Equal(t, "kept", string(res.Value), "written before the loss, found after it")
			})
		}
	}
}

func TestAnOutcomeWrittenWhileTheWaiterIsCutOffIsFound(t *testing.T) {
	t.Parallel()
	for _, conns := range []int{1, 16} {
		t.Run(fmt.Sprintf("%d connections", conns), func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			proxy := redistest.NewProxy(t, server.Addr())
			b := newWaitBench(t, behind(t, proxy), conns)
			direct := &waitBench{t: t, rdb: server.Client(), ns: b.ns}
			for round := range 3 {
				id := mustID(t)
				done := b.wait(t.Context(), id, 30*time.Second)
				eventually(t, func() bool { return listening(server.Client(), 1) }, "it listens")
				proxy.Refuse(true)
				proxy.Cut()
				direct.mustEnd(id, smallage.StatusOK, "value", fmt.Sprint(round))
				time.Sleep(100 * time.Millisecond)
				proxy.Refuse(false)
				got := <-done
				require.NoError(t, got.err)
				require.Equal(t, fmt.Sprint(round), string(got.res.Value))
			}
		})
	}
}

func TestAWaitEndsInTimeAlthoughRedisDoesNotAnswer(t *testing.T) {
	t.Parallel()
	for _, conns := range []int{1, 16} {
		t.Run(fmt.Sprintf("%d connections", conns), func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			proxy := redistest.NewProxy(t, server.Addr())
			b := newWaitBench(t, behind(t, proxy), conns)
			first := b.wait(t.Context(), mustID(t), 1500*time.Millisecond)
			eventually(t, func() bool { return listening(server.Client(), 1) }, "it listens")
			proxy.Stall(true)
			got := <-b.wait(t.Context(), mustID(t), 300*time.Millisecond)
			require.ErrorIs(t, got.err, smallage.ErrNoResult)
			require.Less(t, got.took, 300*time.Millisecond+promptly)
			got = <-first
			require.ErrorIs(t, got.err, smallage.ErrNoResult)
			require.Less(t, got.took, 1500*time.Millisecond+promptly)
			proxy.Stall(false)
			proxy.Refuse(true)
			proxy.Cut()
			got = <-b.wait(t.Context(), mustID(t), 1500*time.Millisecond)
			require.ErrorIs(t, got.err, smallage.ErrNoResult)
			require.ErrorContains(t, got.err, "Redis did not answer")
			require.Less(t, got.took, 1500*time.Millisecond+promptly)
			proxy.Refuse(false)
		})
	}
}

func TestALostNoticeCostsSecondsAtMost(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"the server publishes nothing":       {"--rename-command", "SPUBLISH", "", "--rename-command", "PUBLISH", ""},
		"the server takes no subscriptions":  {"--rename-command", "SSUBSCRIBE", "", "--rename-command", "SUBSCRIBE", ""},
		"notices and subscriptions miss":     {"--rename-command", "SSUBSCRIBE", ""},
		"this user may not use any channels": {"--user", "default", "on", "nopass", "~*", "+@all", "resetchannels"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t, redistest.Args(args...))
			b := newWaitBench(t, server.Client(), 1)
			id := mustID(t)
			done := b.wait(t.Context(), id, time.Minute)
			time.Sleep(100 * time.Millisecond)
			b.mustEnd(id, smallage.StatusOK)
			ended := time.Now()
			got := <-done
			require.NoError(t, got.err)
			require.Less(t, time.Since(ended), 9*time.Second)
			t.Logf("found after %v", time.Since(ended))

			first := newWaitBench(t, server.Client(), 16) // needs no notice
			id = mustID(t)
			done = first.wait(t.Context(), id, time.Minute)
			eventually(t, func() bool { return blocked(server.Client()) == 1 }, "it blocks on the token")
			first.mustEnd(id, smallage.StatusOK)
			ended = time.Now()
			require.NoError(t, (<-done).err)
			require.Less(t, time.Since(ended), promptly)
		})
	}
}

func TestAnOutcomeWrittenByHandIsFoundByItsToken(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := newWaitBench(t, server.Client(), 16)
	id := mustID(t)
	done := b.wait(t.Context(), id, time.Minute)
	eventually(t, func() bool { return blocked(server.Client()) == 1 }, "it blocks on the token")
	ctx := t.Context()
	require.NoError(t, b.rdb.HSet(ctx, b.key(id, "result"), "status", "ok", "value", "by hand").Err())
	require.NoError(t, b.rdb.RPush(ctx, b.key(id, "token"), "1").Err())
	got := <-done
	require.NoError(t, got.err)
	require.Equal(t, "by hand", string(got.res.Value))
	require.Less(t, got.took, 10*time.Second)
	// And somebody who waits by hand gets the token of a job, as often as they like.
	other := mustID(t)
	b.mustEnd(other, smallage.StatusOK)
	for range 3 {
		token, err := b.rdb.BLMove(ctx, b.key(other, "token"), b.key(other, "token"), "LEFT", "LEFT", time.Second).Result()
		require.NoError(t, err)
		require.Equal(t, "1", token)
	}
	require.EqualValues(t, 1, b.rdb.LLen(ctx, b.key(other, "token")).Val())
	require.Positive(t, b.rdb.PTTL(ctx, b.key(other, "token")).Val())
}

func TestATokenWithoutAnOutcomeMakesNoWaiterSpin(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	control := server.Client()
	b := newWaitBench(t, server.Client(), 16)
	id := mustID(t)
	require.NoError(t, b.rdb.RPush(t.Context(), b.key(id, "token"), "1").Err())
	before := infoNumber(t, control, "total_commands_processed")
	got := <-b.wait(t.Context(), id, time.Second)
	require.ErrorIs(t, got.err, smallage.ErrNoResult)
	require.Less(t, infoNumber(t, control, "total_commands_processed")-before, 60)
}

func TestWaitsOfAHealthyMasterGoOnWhileAnotherIsFrozen(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, redistest.Args("--cluster-node-timeout", "60000")) // the others must not give it up
	b := newWaitBench(t, cluster.Client(), 16)
	rdb := b.rdb.(*redis.ClusterClient)
	frozen := cluster.Servers[0]
	on := func(here bool) smallage.JobID {
		for {
			id := mustID(t)
			master, err := rdb.MasterForKey(t.Context(), b.key(id, "result"))
			require.NoError(t, err)
			if (master.Options().Addr == frozen.Addr()) == here {
				return id
			}
		}
	}
	b.mustEnd(on(false), smallage.StatusOK) // go-redis asks any node for its commands, once
	b.mustEnd(on(true), smallage.StatusOK)
	var stuck []chan waited
	for range 20 {
		stuck = append(stuck, b.wait(t.Context(), on(true), 2*time.Second))
	}
	time.Sleep(200 * time.Millisecond)
	frozen.Pause()
	for range 20 {
		stuck = append(stuck, b.wait(t.Context(), on(true), 1500*time.Millisecond))
	}
	for range 20 {
		id := on(false)
		done := b.wait(t.Context(), id, 10*time.Second)
		time.Sleep(5 * time.Millisecond)
		b.mustEnd(id, smallage.StatusOK)
		got := <-done
		require.NoError(t, got.err)
		require.Less(t, got.took, 4*time.Second)
	}
	for _, done := range stuck {
		got := <-done
		require.ErrorIs(t, got.err, smallage.ErrNoResult)
		require.Less(t, got.took, 2*time.Second+promptly)
	}
	frozen.Resume()
	id := on(true)
	done := b.wait(t.Context(), id, 20*time.Second)
	time.Sleep(5 * time.Millisecond)
	b.mustEnd(id, smallage.StatusOK)
	require.NoError(t, (<-done).err)
}

func TestAWaitThatBeginsAfterAClearIsToldNothingFromBefore(t *testing.T) {
	t.Parallel()
	// Each puts an outcome on its way to the client that is cleared before it arrives: the proxy takes a second.
	for name, c := range map[string]struct {
		conns int
		begin func(b, direct *waitBench, slow func(), id smallage.JobID)
	}{
		"a notice to an earlier wait": {1, func(b, direct *waitBench, slow func(), id smallage.JobID) {
			b.wait(b.t.Context(), id, time.Minute)
			eventually(b.t, func() bool { return listening(direct.rdb.(*redis.Client), 2) }, "it listens")
			time.Sleep(100 * time.Millisecond) // and knows it
			slow()
			direct.mustEnd(id, smallage.StatusOK, "value", "stale")
		}},
		"a notice on a channel that is being left": {1, func(b, direct *waitBench, slow func(), id smallage.JobID) {
			ctx, cancel := context.WithCancel(b.t.Context())
			earlier := b.wait(ctx, id, time.Minute)
			eventually(b.t, func() bool { return listening(direct.rdb.(*redis.Client), 2) }, "it listens")
			time.Sleep(100 * time.Millisecond)
			slow()
			cancel()
			<-earlier
			direct.mustEnd(id, smallage.StatusOK, "value", "stale")
			eventually(b.t, func() bool { return !listening(direct.rdb.(*redis.Client), 2) }, "the server knows that nobody listens")
		}},
		"the answer to an earlier look": {1, func(b, direct *waitBench, slow func(), id smallage.JobID) {
			slow()
			direct.mustEnd(id, smallage.StatusOK, "value", "stale")
			b.wait(b.t.Context(), id, time.Minute)
			eventually(b.t, func() bool {
				hits := infoNumber(b.t, direct.rdb.(*redis.Client), "keyspace_hits")
				return hits > 0
			}, "the server has answered")
		}},
		"an earlier wait's token": {16, func(b, direct *waitBench, slow func(), id smallage.JobID) {
			b.wait(b.t.Context(), id, time.Minute)
			eventually(b.t, func() bool { return blocked(direct.rdb.(*redis.Client)) == 2 }, "it blocks")
			slow()
			direct.mustEnd(id, smallage.StatusOK, "value", "stale")
			eventually(b.t, func() bool { return blocked(direct.rdb.(*redis.Client)) == 1 }, "the server has answered")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			proxy := redistest.NewProxy(t, server.Addr())
			b := newWaitBench(t, behind(t, proxy), c.conns)
			direct := &waitBench{t: t, rdb: server.Client(), ns: b.ns}
			b.wait(t.Context(), mustID(t), time.Minute) // brings the subscription up
			eventually(t, func() bool { return listening(server.Client(), 1) }, "it listens")
			id := mustID(t)
			c.begin(b, direct, func() { proxy.Delay(time.Second) }, id)
			direct.clear(id)
			direct.mustEnd(id, smallage.StatusOK, "value", "fresh")
			res, err := b.client.Wait(t.Context(), id, time.Minute)
			proxy.Delay(0)
			require.NoError(t, err)
			require.Equal(t, "fresh", string(res.Value))
		})
	}
}
