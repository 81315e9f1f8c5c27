package embedded_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/smallage/smallage/internal/redistest"
)

// What Smallage's scripts lean on, asked of a real server and of the stand-in. Where both do not answer alike, the
// difference is stated, so that a new version of either that changes its mind is noticed here first.
var questions = []struct {
	name  string
	setup []string // commands, their words separated by blanks
	ask   string   // a Lua script
	want  string   // of both, or of the real server
	mini  string   // of the stand-in, where it differs
	newer bool     // only Redis 7 and newer answer so
}{
	{name: "a claim with a count sets it", setup: pending, want: "1-1 c2 5", ask: `
		redis.call('XCLAIM', 's', 'workers', 'c2', 0, '1-1', 'RETRYCOUNT', 5, 'JUSTID') ` + showPending},
	{name: "a claim of ids alone leaves the count", setup: pending, want: "1-1 c2 1", mini: "1-1 c2 2", ask: `
		redis.call('XCLAIM', 's', 'workers', 'c2', 0, '1-1', 'JUSTID') ` + showPending},
	{name: "a claim looks at the idle time", setup: pending, want: "1-1 c1 1", mini: "1-1 c2 1", ask: `
		redis.call('XCLAIM', 's', 'workers', 'c2', 100000, '1-1', 'RETRYCOUNT', 1, 'JUSTID') ` + showPending},
	{name: "a claim drops a deleted entry", newer: true, setup: pending, want: "2-1 c1 1", mini: "1-1 c2 1", ask: `
		redis.call('XDEL', 's', '1-1')
		redis.call('XCLAIM', 's', 'workers', 'c2', 0, '1-1', 'RETRYCOUNT', 1, 'JUSTID') ` + showPending},
	{name: "an automatic claim of ids leaves the count", setup: pending, want: "1-1 c2 1", mini: "1-1 c2 2", ask: `
		redis.call('XAUTOCLAIM', 's', 'workers', 'c2', 0, '0', 'JUSTID') ` + showPending},
	{name: "pending by idle time", setup: pending, want: "0 2", ask: `
		return #redis.call('XPENDING', 's', 'workers', 'IDLE', 100000, '-', '+', 10) .. ' ' ..
			#redis.call('XPENDING', 's', 'workers', 'IDLE', 0, '-', '+', 10)`},
	{name: "pending by consumer and range", setup: pending, want: "1 0", ask: `
		return #redis.call('XPENDING', 's', 'workers', '2-1', '2-1', 10, 'c1') .. ' ' ..
			#redis.call('XPENDING', 's', 'workers', '-', '+', 10, 'c2')`},
	{name: "a deleted entry stays pending until acknowledged", setup: pending, want: "2 1 1", ask: `
		redis.call('XDEL', 's', '1-1')
		local before = #redis.call('XPENDING', 's', 'workers', '-', '+', 10)
		local acknowledged = redis.call('XACK', 's', 'workers', '1-1')
		return before .. ' ' .. acknowledged .. ' ' .. #redis.call('XPENDING', 's', 'workers', '-', '+', 10)`, mini: "2 0 1"},
	{name: "no group", want: "NOGROUP", ask: `
		return string.match(redis.pcall('XPENDING', 's', 'workers', '-', '+', 1).err, '^%a+')`},
	{name: "a group that is there", setup: pending, want: "BUSYGROUP", ask: `
		return string.match(redis.pcall('XGROUP', 'CREATE', 's', 'workers', '0').err, '^%a+')`},
	{name: "ids never repeat, not even once deleted", want: "false", ask: `
		local a = redis.call('XADD', 's', '*', 'f', 'v')
		redis.call('XDEL', 's', a)
		return tostring(a == redis.call('XADD', 's', '*', 'f', 'v'))`},
	{name: "a stream outlives its entries", setup: pending, want: "1", ask: `
		redis.call('XDEL', 's', '1-1', '2-1')
		return tostring(redis.call('EXISTS', 's'))`},
	{name: "any byte in a field", want: "7", ask: `
		local id = redis.call('XADD', 's', '*', 'f', 'a\0b\255\r\nc')
		return tostring(#redis.call('XRANGE', 's', id, id)[1][2][2])`},
	{name: "large numbers as arguments", want: "1764665000123 10000000000000", ask: `
		redis.call('SET', 'k', 1764665000123)
		return redis.call('GET', 'k') .. ' ' .. string.format('%.0f', 1e13)`},
	{name: "large scores", want: "1764665000123", ask: `
		redis.call('ZADD', 'z', 1764665000123, 'm')
		return redis.call('ZRANGE', 'z', 0, 0, 'WITHSCORES')[2]`},
	{name: "the clock", want: "table 10", ask: `
		local t = redis.call('TIME')
		return type(t) .. ' ' .. #t[1]`},
	{name: "what is not there", want: "false false 0 false", ask: `
		return tostring(redis.call('GET', 'k')) .. ' ' .. tostring(redis.call('HGET', 'k', 'f')) .. ' ' ..
			#redis.call('HGETALL', 'k') .. ' ' .. tostring(redis.call('SET', 'k', 'v', 'XX'))`},
	{name: "rotating a list keeps its TTL", setup: []string{"RPUSH l 1", "PEXPIRE l 100000"}, want: "true", mini: "false", ask: `
		redis.call('LMOVE', 'l', 'l', 'LEFT', 'LEFT')
		return tostring(redis.call('PTTL', 'l') > 0)`},
	{name: "1,000 values at once", want: "1000", ask: `
		local t = {}
		for i = 1, 1000 do t[i] = 'v' end
		return tostring(redis.call('RPUSH', 'l', unpack(t)))`},
	{name: "JSON with bytes that are not UTF-8", want: "4", mini: "8", ask: `
		return tostring(#cjson.decode('["a\255\254b"]')[1])`},
	{name: "an empty JSON list", want: "{}", mini: "[]", ask: `return cjson.encode({})`},
	{name: "a notice", want: "0", ask: `return tostring(redis.call('PUBLISH', 'channel', 'v'))`},
	{name: "a notice within a shard", newer: true, want: "0", mini: "unknown", ask: `
		local reply = redis.pcall('SPUBLISH', 'channel', 'v')
		return type(reply) == 'table' and string.match(string.lower(reply.err), 'unknown') or tostring(reply)`},
	{name: "what a consumer holds", setup: pending, want: "c1 2 number", ask: `
		local info, list = {}, redis.call('XINFO', 'CONSUMERS', 's', 'workers')[1]
		for i = 1, #list, 2 do info[list[i]] = list[i + 1] end
		return info.name .. ' ' .. info.pending .. ' ' .. type(info.idle)`},
	{name: "bad JSON", want: "false", mini: "true", ask: `return tostring(pcall(cjson.decode, '{bad'))`},
}

var pending = []string{
	"XADD s 1-1 f v", "XADD s 2-1 f v", "XGROUP CREATE s workers 0", "XREADGROUP GROUP workers c1 STREAMS s >",
}

const showPending = `
	local first = redis.call('XPENDING', 's', 'workers', '-', '+', 1)[1]
	return first[1] .. ' ' .. first[2] .. ' ' .. first[4]`

func TestStandInAnswersAsRedisDoes(t *testing.T) {
	t.Parallel()
	servers := map[string]func(t *testing.T) *redis.Client{
		"redis":    func(t *testing.T) *redis.Client { return redistest.Start(t).Client() },
		"embedded": func(t *testing.T) *redis.Client { return start(t).Client() },
	}
	for server, client := range servers {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			rdb := client(t)
			info, err := rdb.Info(t.Context()).Result()
			require.NoError(t, err)
			older := strings.Contains(info, "redis_version:6.")
			for _, q := range questions {
				t.Run(q.name, func(t *testing.T) {
					if q.newer && older {
						t.Skip("this server is older than Redis 7")
					}
					ctx := t.Context()
					require.NoError(t, rdb.FlushAll(ctx).Err())
					for _, line := range q.setup {
						var words []any
						for _, word := range strings.Fields(line) {
							words = append(words, word)
						}
						require.NoError(t, rdb.Do(ctx, words...).Err(), line)
					}
					want := q.want
					if server == "embedded" && q.mini != "" {
						want = q.mini
					}
					got, err := rdb.Eval(ctx, q.ask, nil).Result()
					require.NoError(t, err)
					require.Equal(t, want, fmt.Sprint(got))
				})
			}
		})
	}
}

// Redis looks at the timeouts of blocked clients ten times a second, so only the client can keep a deadline to the
// millisecond; that a fraction of a second is taken for what it is holds for both.
func TestBlockingTimeoutsTakeFractions(t *testing.T) {
	t.Parallel()
	for name, rdb := range map[string]*redis.Client{"redis": redistest.Shared(t).Client(), "embedded": start(t).Client()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			list, quickest := redistest.Namespace(t), time.Hour // of some, since a busy machine may be late once
			for range 5 {
				begin := time.Now()
				err := rdb.Do(context.Background(), "BLMOVE", list, list, "LEFT", "LEFT", "0.05").Err()
				require.ErrorIs(t, err, redis.Nil)
				quickest = min(quickest, time.Since(begin))
			}
			require.GreaterOrEqual(t, quickest, 50*time.Millisecond)
			require.Less(t, quickest, 900*time.Millisecond)
		})
	}
}

func TestUnknownScriptsAreKnownAgainOnceSent(t *testing.T) {
	t.Parallel()
	script := redis.NewScript("return 'known'")
	for name, rdb := range map[string]*redis.Client{"redis": redistest.Start(t).Client(), "embedded": start(t).Client()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			require.True(t, redis.HasErrorPrefix(script.EvalSha(ctx, rdb, nil).Err(), "NOSCRIPT"))
			require.NoError(t, script.Eval(ctx, rdb, nil).Err())
			require.Equal(t, "known", script.EvalSha(ctx, rdb, nil).Val())
			require.NoError(t, rdb.ScriptFlush(ctx).Err())
			require.True(t, redis.HasErrorPrefix(script.EvalSha(ctx, rdb, nil).Err(), "NOSCRIPT"))
		})
	}
}

// A reader that is blocked on a stream learns that the stream or its group went away.
func TestBlockedReadersLearnThatTheirGroupIsGone(t *testing.T) {
	t.Parallel()
	for name, rdb := range map[string]*redis.Client{"redis": redistest.Start(t).Client(), "embedded": start(t).Client()} {
		for _, gone := range []string{"DEL s", "XGROUP DESTROY s workers"} {
			t.Run(name+" "+gone, func(t *testing.T) {
				ctx := t.Context()
				require.NoError(t, rdb.FlushAll(ctx).Err())
				require.NoError(t, rdb.XGroupCreateMkStream(ctx, "s", "workers", "0").Err())
				ended := make(chan error, 1)
				go func() {
					ended <- rdb.XReadGroup(context.Background(), &redis.XReadGroupArgs{
						Group: "workers", Consumer: "c1", Streams: []string{"s", ">"}, Block: 30 * time.Second,
					}).Err()
				}()
				// Wherever in its way the reader is, it must come back with an error.
				words := strings.Fields(gone)
				args := make([]any, len(words))
				for i, word := range words {
					args[i] = word
				}
				require.NoError(t, rdb.Do(ctx, args...).Err())
				err := <-ended
				require.True(t, redis.HasErrorPrefix(err, "NOGROUP") || redis.HasErrorPrefix(err, "UNBLOCKED"), "%v", err)
			})
		}
	}
}
