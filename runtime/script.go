package smallage

import (
	"context"
	"crypto/sha1" //nolint:gosec // Redis names scripts by SHA-1
	"embed"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed lua/*.lua
var luaFiles embed.FS

// script is one transition of the protocol. Its contract (KEYS, ARGV, what it returns) heads its .lua file.
type script struct {
	source string
	sha    any // a string: its name, as it is passed to commands
}

// newScript joins shared Lua files and the script's own, in the order given.
func newScript(files ...string) *script {
	var source strings.Builder
	for _, name := range files {
		text, err := luaFiles.ReadFile("lua/" + name + ".lua")
		if err != nil {
			panic(err) // the file is embedded: a misspelt name shows at the first start
		}
		source.Write(text)
		source.WriteByte('\n')
	}
	sum := sha1.Sum([]byte(source.String())) //nolint:gosec
	return &script{source.String(), hex.EncodeToString(sum[:])}
}

var (
	enqueueScript = newScript("clock", "job", "delay", "enqueue")
	tickScript    = newScript("clock", "job", "take", "promote", "tick")
	renewScript   = newScript("owned", "take", "renew")
	ackScript     = newScript("owned", "ack")
	retryScript   = newScript("clock", "owned", "job", "delay", "retry")
	verdictScript = newScript("clock", "owned", "verdict")
	finishScript  = newScript("clock", "owned", "job", "dead", "finish")
	releaseScript = newScript("owned", "release")
	outcomeScript = newScript("outcome")
	lookScript    = newScript("look")
	claimScript   = newScript("claim")
	doneScript    = newScript("done")
	unclaimScript = newScript("unclaim")
	extendScript  = newScript("extend")
	dedupScript   = newScript("dedup")
	forgetScript  = newScript("forget")
	replayScript  = newScript("job", "dead", "replay")
	undeadScript  = newScript("job", "dead", "undead")
	cancelScript  = newScript("clock", "cancel")
	sweepScript   = newScript("clock", "job", "dead", "sweep")
)

// scriptCall is one call of a script, or a plain command, with its reply. All keys share one slot.
type scriptCall struct {
	script *script // nil: a plain command
	args   []any   // as they are sent; of a script: EVALSHA, its name, how many keys, the keys, its arguments
	sent   time.Time
	reply  any // nil where Redis answers with nothing
	err    error
}

func newCall(s *script, keys []string, args ...any) *scriptCall {
	all := append(make([]any, 0, 3+len(keys)+len(args)), "evalsha", s.sha, len(keys))
	for _, key := range keys {
		all = append(all, key)
	}
	return &scriptCall{script: s, args: append(all, args...)}
}

// plainCall is a command that may be sent again like a script, with its key first.
func plainCall(args ...any) *scriptCall { return &scriptCall{args: args} }

// runScripts sends the calls in one flush and fills in each one's reply or error. A server that does not know a script,
// as after a restart, gets its text in a second flush: all calls are safe to send again.
//
// The commands behind go with the first flush, once. They hold their own replies and errors.
func runScripts(ctx context.Context, rdb redis.UniversalClient, calls []*scriptCall, behind ...redis.Cmder) {
	for len(calls) > 0 {
		calls = sendScripts(ctx, rdb, calls, behind)
		behind = nil
	}
}

// sendScripts returns the calls that must be sent with the script's text.
func sendScripts(ctx context.Context, rdb redis.UniversalClient, calls []*scriptCall, behind []redis.Cmder) (again []*scriptCall) {
	sent := time.Now()
	cmds := make([]*redis.Cmd, len(calls))
	for i, c := range calls {
		cmds[i] = redis.NewCmd(ctx, c.args...)
		if c.script != nil {
			cmds[i].SetFirstKeyPos(3)
		}
	}
	// Each command holds its own error.
	if len(cmds) == 1 && len(behind) == 0 {
		_ = rdb.Process(ctx, cmds[0])
	} else {
		pipe := rdb.Pipeline()
		for _, cmd := range cmds {
			_ = pipe.Process(ctx, cmd)
		}
		for _, cmd := range behind {
			_ = pipe.Process(ctx, cmd)
		}
		_, _ = pipe.Exec(ctx)
	}
	for i, c := range calls {
		c.sent = sent
		c.reply, c.err = cmds[i].Result()
		switch {
		case errors.Is(c.err, redis.Nil):
			c.err = nil
		case c.err != nil && c.script != nil && c.args[1] == c.script.sha && redis.HasErrorPrefix(c.err, "NOSCRIPT"):
			c.args = append([]any{"eval", c.script.source}, c.args[2:]...)
			again = append(again, c)
		}
	}
	return again
}

// run sends one call.
func (s *script) run(ctx context.Context, rdb redis.UniversalClient, keys []string, args ...any) (any, error) {
	c := newCall(s, keys, args...)
	runScripts(ctx, rdb, []*scriptCall{c})
	return c.reply, c.err
}

// The replies of scripts are built by the scripts beside this file, so a wrong type is a bug on either side; reading one
// as zero keeps a worker running where a panic would not.
func replyList(v any) []any   { list, _ := v.([]any); return list }
func replyText(v any) string  { s, _ := v.(string); return s }
func replyNumber(v any) int64 { n, _ := v.(int64); return n }
func replyAt(v any, i int) any {
	if list := replyList(v); i < len(list) {
		return list[i]
	}
	return nil
}

// replyScores reads {member, score…}.
func replyScores(v any) []redis.Z {
	list := replyList(v)
	scores := make([]redis.Z, 0, len(list)/2)
	for i := 0; i+1 < len(list); i += 2 {
		score, _ := strconv.ParseFloat(replyText(list[i+1]), 64)
		scores = append(scores, redis.Z{Member: replyText(list[i]), Score: score})
	}
	return scores
}
