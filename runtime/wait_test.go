package smallage_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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

var waitBehaviour = []struct {
	name string
	test func(*testing.T, *waitBench)
}{
	{"an outcome that is there is returned at once", anOutcomeThatIsThereIsReturnedAtOnce},
	{"an outcome that comes ends the wait", anOutcomeThatComesEndsTheWait},
	{"an outcome at the very moment of the wait is not missed", anOutcomeAtTheVeryMomentOfTheWaitIsNotMissed},
	{"a large value of any bytes arrives whole", aLargeValueOfAnyBytesArrivesWhole},
	{"a cleared outcome is waited for anew", aClearedOutcomeIsWaitedForAnew},
	{"an end of the context ends the wait", anEndOfTheContextEndsTheWait},
	{"waiters of one job do not share their value's bytes", waitersOfOneJobDoNotShareTheirValuesBytes},
	{"many are waited for at once", manyAreWaitedForAtOnce},
}

// With 16 connections the first few waits block on their tokens; with one, all hear notices.
func TestWaitingOnEveryServer(t *testing.T) {
	t.Parallel()
	for _, server := range waitServers {
		rdb := server.make(t)
		for _, conns := range []int{1, 16} {
			for _, c := range waitBehaviour {
				t.Run(fmt.Sprintf("%s, %d connections, %s", server.name, conns, c.name), func(t *testing.T) {
					t.Parallel()
					c.test(t, newWaitBench(t, rdb, conns))
				})
			}
		}
	}
}

func anOutcomeThatIsThereIsReturnedAtOnce(t *testing.T, b *waitBench) {
	for range 50 {
		id := mustID(t)
		b.mustEnd(id, smallage.StatusOK, "task", "test.Echo", "value", "x")
		res, err := b.client.Wait(t.Context(), id, time.Minute)
		require.NoError(t, err)
		require.Equal(t, "x", string(res.Value))
		require.Equal(t, id, res.ID)
		require.WithinDuration(t, time.Now(), res.FinishedAt, 10*time.Second)
		again, err := b.client.Result(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, res, again)
	}
}

// promptly is long enough for a slow machine, and less than the three seconds after which go-redis gives up by itself.
const promptly = 2500 * time.Millisecond

// A wait that listens looks again by itself only after some seconds. On a machine that is busy enough, being told takes
// as long now and then, but not again and again.
func anOutcomeThatComesEndsTheWait(t *testing.T, b *waitBench) {
	const jobs, tries, byItself = 40, 5, 2 * time.Second
	for try := range tries {
		var ids []smallage.JobID
		var waits []chan waited
		for range jobs {
			ids = append(ids, mustID(t))
			waits = append(waits, b.wait(t.Context(), ids[len(ids)-1], time.Minute))
		}
		time.Sleep(300 * time.Millisecond * time.Duration(try+1)) // most listen by now; those that do not must get their outcome as well
		var ended []time.Time
		for i, id := range ids {
			b.mustEnd(id, smallage.StatusOK, "task", "test.Echo", "value", fmt.Sprint(i))
			ended = append(ended, time.Now())
		}
		var late []time.Duration
		for i, done := range waits {
			got := <-done
			require.NoError(t, got.err)
			require.Equal(t, fmt.Sprint(i), string(got.res.Value))
			late = append(late, got.at.Sub(ended[i]))
		}
		slices.Sort(late)
		if late[jobs/2] < byItself {
			return // most were told and did not have to look
		}
	}
	require.Fail(t, "waits are not told of outcomes but find them when they look again")
}

func anOutcomeAtTheVeryMomentOfTheWaitIsNotMissed(t *testing.T, b *waitBench) {
	for range 200 {
		id := mustID(t)
		done := b.wait(t.Context(), id, 30*time.Second)
		time.Sleep(rand.N(1500 * time.Microsecond))
		b.mustEnd(id, smallage.StatusFailed, "task", "test.Echo", "error", "no luck")
		got := <-done
		require.NoError(t, got.err)
		require.Equal(t, "no luck", got.res.Error)
		require.Less(t, got.took, 5*time.Second)
	}
}

func aLargeValueOfAnyBytesArrivesWhole(t *testing.T, b *waitBench) {
	for _, size := range []int{0, 1, 1000, 1024, 1025, 300_000} {
		value := make([]byte, size)
		for i := range value {
			value[i] = byte(rand.Uint32())
		}
		id := mustID(t)
		done := b.wait(t.Context(), id, time.Minute)
		time.Sleep(rand.N(3 * time.Millisecond))
		b.mustEnd(id, smallage.StatusOK, "value", value)
		got := <-done
		require.NoError(t, got.err)
		require.True(t, bytes.Equal(value, got.res.Value), "%d bytes", size)
	}
}

func aClearedOutcomeIsWaitedForAnew(t *testing.T, b *waitBench) {
	id := mustID(t)
	b.mustEnd(id, smallage.StatusFailed, "error", "first", "death", "d1")
	res, err := b.client.Wait(t.Context(), id, time.Minute)
	require.NoError(t, err)
	require.Equal(t, "first", res.Error)
	for i := range 10 { // one after another on a channel that stays subscribed to for a while
		b.clear(id)
		done := b.wait(t.Context(), id, time.Minute)
		time.Sleep(rand.N(20 * time.Millisecond))
		select {
		case got := <-done:
			require.Fail(t, "the cleared outcome came back", "%+v", got)
		default:
		}
		b.mustEnd(id, smallage.StatusFailed, "error", fmt.Sprint(i))
		got := <-done
		require.NoError(t, got.err)
		require.Equal(t, fmt.Sprint(i), got.res.Error)
	}
}

func anEndOfTheContextEndsTheWait(t *testing.T, b *waitBench) {
	for _, after := range []time.Duration{0, time.Millisecond, 50 * time.Millisecond} {
		ctx, cancel := context.WithCancel(t.Context())
		done := b.wait(ctx, mustID(t), time.Minute)
		time.Sleep(after)
		cancelled := time.Now()
		cancel()
		got := <-done
		require.ErrorIs(t, got.err, context.Canceled)
		require.Less(t, time.Since(cancelled), promptly)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := b.client.Wait(ctx, mustID(t), time.Minute)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, smallage.ErrNoResult)
}

func waitersOfOneJobDoNotShareTheirValuesBytes(t *testing.T, b *waitBench) {
	id := mustID(t)
	var waits []chan waited
	for range 5 {
		waits = append(waits, b.wait(t.Context(), id, time.Minute))
	}
	time.Sleep(20 * time.Millisecond)
	b.mustEnd(id, smallage.StatusOK, "value", "abc")
	for _, done := range waits {
		got := <-done
		require.NoError(t, got.err)
		require.Equal(t, "abc", string(got.res.Value))
		got.res.Value[0] = 'X'
	}
}

func manyAreWaitedForAtOnce(t *testing.T, b *waitBench) {
	const jobs = 300
	ids := make([]smallage.JobID, jobs)
	for i := range ids {
		ids[i] = mustID(t)
	}
	go func() {
		for _, i := range rand.Perm(jobs) {
			_, _ = b.end(ids[i], smallage.StatusOK, "value", fmt.Sprint(i))
		}
	}()
	results, err := b.client.WaitAll(t.Context(), ids, time.Minute)
	require.NoError(t, err)
	for i, res := range results {
		require.Equal(t, ids[i], res.ID)
		require.Equal(t, fmt.Sprint(i), string(res.Value))
	}
	first, err := b.client.WaitAny(t.Context(), ids, time.Minute)
	require.NoError(t, err)
	require.True(t, slices.Contains(ids, first.ID))
}

func TestTimeoutsAreKeptToTheMillisecond(t *testing.T) {
	t.Parallel()
	token, notices := newWaitBench(t, redistest.Shared(t).Client(), 16), newWaitBench(t, redistest.Shared(t).Client(), 1)
	timeouts := []time.Duration{-time.Second, 0, time.Millisecond, 300 * time.Millisecond, 30 * time.Second}
	type lateness struct {
		timeout, limit, least time.Duration
		errs                  []error
	}
	found := make(chan lateness)
	for _, b := range []*waitBench{token, notices} {
		for _, timeout := range timeouts {
			go func() { // all at once: the longest takes half a minute
				late := lateness{timeout: timeout, limit: 20 * time.Millisecond, least: time.Hour}
				if timeout > time.Second {
					late.limit = promptly
				}
				for try := range 40 { // the machine may be busy; a wait that is late by itself is late each time
					id, err := smallage.NewJobID()
					if err == nil {
						begin := time.Now()
						_, err = b.client.Wait(context.Background(), id, timeout)
						late.least = min(late.least, time.Since(begin)-max(timeout, 0))
					}
					late.errs = append(late.errs, err)
					if timeout > time.Second || try >= 4 && late.least < late.limit {
						break
					}
				}
				found <- late
			}()
		}
	}
	for range 2 * len(timeouts) {
		late := <-found
		t.Logf("a timeout of %v was late by %v", late.timeout, late.least)
		for _, err := range late.errs {
			require.ErrorIs(t, err, smallage.ErrNoResult)
			require.NotErrorIs(t, err, smallage.ErrNoResultRequested)
		}
		require.GreaterOrEqual(t, late.least, time.Duration(0), late.timeout)
		require.Less(t, late.least, late.limit, late.timeout)
	}
}

func TestAWaitOfAMillisecondFindsWhatIsThere(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	rdb := behind(t, proxy)
	b := newWaitBench(t, rdb, 16)
	id := mustID(t)
	b.mustEnd(id, smallage.StatusOK)
	_, err := b.client.Result(t.Context(), id) // connects
	require.NoError(t, err)
	proxy.Delay(3 * time.Millisecond)
	found := 0
	for range 20 {
		if _, err := b.client.Wait(t.Context(), id, time.Millisecond); err == nil {
			found++
		}
	}
	require.Positive(t, found, "a look takes longer than the timeout, and is waited for all the same")
}

func TestWaitRefusesWhatItCannotAnswer(t *testing.T) {
	t.Parallel()
	b := newWaitBench(t, redistest.Shared(t).Client(), 16)
	for name, call := range map[string]func() error{
		"Wait":   func() error { _, err := b.client.Wait(t.Context(), smallage.JobID{}, time.Minute); return err },
		"Result": func() error { _, err := b.client.Result(t.Context(), smallage.JobID{}); return err },
		"WaitAll": func() error {
			_, err := b.client.WaitAll(t.Context(), []smallage.JobID{mustID(t), {}}, time.Minute)
			return err
		},
		"WaitAny": func() error { _, err := b.client.WaitAny(t.Context(), []smallage.JobID{{}}, time.Minute); return err },
		"no ids":  func() error { _, err := b.client.WaitAny(t.Context(), nil, time.Minute); return err },
		"no client": func() error {
			var none *smallage.Client
			_, err := none.Wait(t.Context(), mustID(t), time.Minute)
			return err
		},
	} {
		require.ErrorIs(t, call(), smallage.ErrInvalid, name)
	}
	// Something else is in the job's key: no later look would change that.
	id := mustID(t)
	require.NoError(t, b.rdb.Set(t.Context(), b.key(id, "result"), "x", time.Minute).Err())
	begin := time.Now()
	_, err := b.client.Wait(t.Context(), id, 20*time.Second)
	require.ErrorContains(t, err, "WRONGTYPE")
	require.Less(t, time.Since(begin), 10*time.Second)
}

func TestCloseEndsTheWaitsUnderWay(t *testing.T) {
	t.Parallel()
	for _, conns := range []int{1, 16} {
		b := newWaitBench(t, redistest.Start(t).Client(), conns)
		var waits []chan waited
		for range 10 {
			waits = append(waits, b.wait(t.Context(), mustID(t), time.Minute))
		}
		time.Sleep(50 * time.Millisecond)
		begin := time.Now()
		require.NoError(t, b.client.Close())
		for _, done := range waits {
			require.ErrorContains(t, (<-done).err, "the client is closed")
		}
		require.Less(t, time.Since(begin), 5*time.Second)
		_, err := b.client.Wait(t.Context(), mustID(t), time.Minute)
		require.ErrorContains(t, err, "the client is closed")
		require.NoError(t, b.client.Close(), "again")
	}
}

func TestWaitAllMarksWhatIsMissing(t *testing.T) {
	t.Parallel()
	b := newWaitBench(t, redistest.Shared(t).Client(), 16)
	silent, err := echo.Enqueue(t.Context(), b.client, textArgs{"x"}, nil)
	require.NoError(t, err)
	done, failed, never := mustID(t), mustID(t), mustID(t)
	b.mustEnd(done, smallage.StatusOK, "value", "v")
	b.mustEnd(failed, smallage.StatusFailed, "error", "no luck")
	ids := []smallage.JobID{never, done, silent, failed, done}
	for _, timeout := range []time.Duration{-1, 0, 3 * time.Millisecond, 50 * time.Millisecond} {
		var results []smallage.Result
		var err error
		eventually(t, func() bool { // on a busy machine a short wait may end before Redis has answered, but not each time
			results, err = b.client.WaitAll(t.Context(), ids, timeout)
			return !strings.Contains(fmt.Sprint(err), "Redis did not answer")
		}, "a wait of %v is answered", timeout)
		require.ErrorIs(t, err, smallage.ErrNoResult)
		require.NotErrorIs(t, err, smallage.ErrNoResultRequested)
		require.ErrorContains(t, err, "2 of 5 jobs")
		require.Len(t, results, len(ids))
		for i, id := range ids {
			require.Equal(t, id, results[i].ID)
			require.Equal(t, id == never || id == silent, results[i].Missing())
		}
		require.Equal(t, "v", string(results[4].Value))
		var first smallage.Result
		eventually(t, func() bool {
			first, err = b.client.WaitAny(t.Context(), ids, timeout)
			return err == nil
		}, "so is a wait of %v for any", timeout)
		require.Contains(t, []smallage.JobID{done, failed}, first.ID)
	}
	results, err := b.client.WaitAll(t.Context(), []smallage.JobID{done, silent}, time.Minute)
	require.ErrorIs(t, err, smallage.ErrNoResultRequested, "at once")
	require.True(t, results[0].OK())
	_, err = b.client.WaitAny(t.Context(), []smallage.JobID{silent}, time.Minute)
	require.ErrorIs(t, err, smallage.ErrNoResultRequested, "at once")
	_, err = b.client.WaitAny(t.Context(), []smallage.JobID{never, silent}, 10*time.Millisecond)
	require.ErrorIs(t, err, smallage.ErrNoResult)
	require.False(t, errors.Is(err, smallage.ErrNoResultRequested))
	results, err = b.client.WaitAll(t.Context(), nil, time.Minute)
	require.NoError(t, err)
	require.Empty(t, results)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	results, err = b.client.WaitAll(ctx, []smallage.JobID{never, done}, time.Minute)
	require.ErrorIs(t, err, context.Canceled)
	require.True(t, results[1].OK(), "what came is returned beside the error")
}

func TestAWaitIsSubscribedBeforeItsFirstLookIsAnswered(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	control := &waitBench{t: t, rdb: server.Client()}
	rdb := server.ClientWith(redis.Options{PoolSize: 1, PipelinePoolSize: -1, PoolTimeout: time.Minute, ReadTimeout: time.Minute})
	b := newWaitBench(t, rdb, 1)
	control.ns = b.ns
	first := b.wait(t.Context(), mustID(t), time.Minute) // brings the subscription up
	eventually(t, func() bool { return listening(server.Client(), 1) }, "it listens")

	held := make(chan error, 1)
	go func() { held <- rdb.BLPop(context.Background(), 0, "released").Err() }()
	eventually(t, func() bool { return infoNumber(t, server.Client(), "blocked_clients") == 1 }, "the only connection is taken")
	id := mustID(t)
	done := b.wait(t.Context(), id, time.Minute)
	eventually(t, func() bool { return listening(server.Client(), 2) }, "it listens, though it cannot look")
	control.mustEnd(id, smallage.StatusOK, "value", "told")
	got := <-done
	require.NoError(t, got.err)
	require.Equal(t, "told", string(got.res.Value))

	_, err := b.client.Wait(t.Context(), mustID(t), 300*time.Millisecond)
	require.ErrorIs(t, err, smallage.ErrNoResult)
	require.ErrorContains(t, err, "Redis did not answer", "nobody has looked yet, although it listens")
	require.Empty(t, first)
	require.NoError(t, server.Client().LPush(t.Context(), "released", "1").Err())
	require.NoError(t, <-held)
}

func TestOutcomesThatAreThereTakeNoSubscriptions(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := newWaitBench(t, server.Client(), 1)
	b.wait(t.Context(), mustID(t), time.Minute) // brings the subscription up
	eventually(t, func() bool { return listening(server.Client(), 1) }, "it listens")
	ids := make([]smallage.JobID, 90)
	for i := range ids {
		ids[i] = mustID(t)
		b.mustEnd(ids[i], smallage.StatusOK)
	}
	results, err := b.client.WaitAll(t.Context(), ids, time.Minute)
	require.NoError(t, err)
	require.Len(t, results, len(ids))
	stats := server.Client().InfoMap(t.Context(), "commandstats").Val()["Commandstats"]
	calls, _, _ := strings.Cut(strings.TrimPrefix(stats["cmdstat_ssubscribe"], "calls="), ",")
	n, err := strconv.Atoi(calls)
	require.NoError(t, err, stats)
	require.LessOrEqual(t, n, 2, "one for the first wait, one for the first of the others, who may be alone")
}
