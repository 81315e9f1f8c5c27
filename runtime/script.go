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
	sha    string
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

// scriptCall is one call of a script with its reply. All keys share one slot.
type scriptCall struct {
	script *script
	keys   []string
	args   []any
	form   form
	bare   []any // a plain command that does what the script does where nothing stands in its way, and else does nothing
	sent   time.Time
	reply  any
	err    error
}

// form is how a call is sent.
type form uint8

const (
	formSHA   form = iota
	formBare       // the plain command; where it does nothing, the script follows
	formWhole      // the script's text, for a server that does not know it, as after a restart
)

func newCall(s *script, keys []string, args ...any) *scriptCall {
	return &scriptCall{script: s, keys: keys, args: args}
}

// runScripts sends the calls in one flush and fills in each one's reply or error. Those that must be sent in another form
// go in a second flush: all of them are safe to send again.
func runScripts(ctx context.Context, rdb redis.UniversalClient, calls []*scriptCall) {
	for len(calls) > 0 {
		calls = sendScripts(ctx, rdb, calls)
	}
}

// sender is a client or a pipeline.
type sender interface {
	redis.Cmdable
	Do(ctx context.Context, args ...any) *redis.Cmd
}

// sendScripts returns the calls that must be sent in another form.
func sendScripts(ctx context.Context, rdb redis.UniversalClient, calls []*scriptCall) (again []*scriptCall) {
	sent := time.Now()
	cmds := make([]*redis.Cmd, len(calls))
	send := func(on sender) {
		for i, c := range calls {
			switch c.form {
			case formBare:
				cmds[i] = on.Do(ctx, c.bare...)
			case formSHA:
				cmds[i] = on.EvalSha(ctx, c.script.sha, c.keys, c.args...)
			case formWhole:
				cmds[i] = on.Eval(ctx, c.script.source, c.keys, c.args...)
			}
		}
	}
	if len(calls) == 1 {
		send(rdb)
	} else {
		pipe := rdb.Pipeline()
		send(pipe)
		_, _ = pipe.Exec(ctx) // each command holds its own error
	}
	for i, c := range calls {
		c.sent = sent
		c.reply, c.err = cmds[i].Result()
		none := errors.Is(c.err, redis.Nil)
		if none {
			c.err = nil
		}
		switch {
		case c.form == formBare && none:
			c.form = formSHA
			again = append(again, c)
		case c.form == formSHA && c.err != nil && redis.HasErrorPrefix(c.err, "NOSCRIPT"):
			c.form = formWhole
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
