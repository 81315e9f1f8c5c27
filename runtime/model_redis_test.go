package smallage

import (
	"context"
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"
)

// dumpScript reads everything that the model compares, at one moment.
//
// KEYS  1 stream  2 delayed  3 delayed:jobs  4 dead  5 dead:jobs  6 verdict  7 dedup key  8… result and token of each job
var dumpScript = redis.NewScript(`
local entries, pending, owners = {}, {}, {}
for _, e in ipairs(redis.call('XRANGE', KEYS[1], '-', '+')) do
  local id = 'wake'
  for i = 1, #e[2], 2 do if e[2][i] == 'job' then id = string.match(e[2][i + 1], '^1 ([^ ]*)') end end
  entries[#entries + 1] = e[1] .. ' ' .. id
end
local rows = redis.pcall('XPENDING', KEYS[1], 'workers', '-', '+', 1000)
if not rows.err then
  for _, r in ipairs(rows) do pending[#pending + 1] = r[1] .. ' ' .. r[2] .. ' ' .. r[4] end
end
local delayed = redis.call('HKEYS', KEYS[3])
table.sort(delayed)
local dead = {}
for _, death in ipairs(redis.call('HKEYS', KEYS[5])) do
  local packed = redis.call('HGET', KEYS[5], death)
  dead[#dead + 1] = death .. ' ' .. string.match(packed, '3:job%d+:1 (' .. string.rep('.', 36) .. ')')
end
table.sort(dead)
local verdicts = redis.call('HKEYS', KEYS[6])
table.sort(verdicts)
local outcomes = {}
for i = 8, #KEYS, 2 do
  outcomes[#outcomes + 1] = {redis.call('HGET', KEYS[i], 'status') or '', redis.call('PTTL', KEYS[i]), redis.call('PTTL', KEYS[i + 1]),
    redis.call('HGET', KEYS[i], 'value') or ''}
end
return {entries, pending, delayed, dead, verdicts, redis.call('GET', KEYS[7]) or '', redis.call('PTTL', KEYS[7]), outcomes,
  redis.call('ZCARD', KEYS[2]), redis.call('ZCARD', KEYS[4])}
`)

// dump is the state of one queue, one dedup key and all outcomes.
type dump struct {
	entries  map[string]JobID // entry id → job; zero: a wake entry
	holders  map[string]string
	counts   map[string]string
	delayed  []JobID
	dead     map[string]JobID // death id → job
	verdicts []string
	value    string
	ttl      int64
	outcomes map[JobID]outcomeDump
	indexes  [2]int64 // sizes of the delayed and dead indexes
	queue    string   // the queue's part as text, for comparing
}

type outcomeDump struct {
	status        Status
	ttl, tokenTTL int64
	value         string
}

func readDump(ctx context.Context, rdb *redis.Client, k *queueKeys, dedup string, jobs []JobID, keys *keyspace) (*dump, error) {
	names := []string{k.stream, k.delayed, k.delayedJobs, k.dead, k.deadJobs, k.verdict, dedup}
	for _, id := range jobs {
		result, token, _ := keys.outcome(id)
		names = append(names, result, token)
	}
	reply, err := dumpScript.Run(ctx, rdb, names).Result()
	if err != nil {
		return nil, err
	}
	d := &dump{
		entries: map[string]JobID{}, holders: map[string]string{}, counts: map[string]string{}, dead: map[string]JobID{},
		outcomes: map[JobID]outcomeDump{}, value: replyText(replyAt(reply, 5)), ttl: replyNumber(replyAt(reply, 6)),
		indexes: [2]int64{replyNumber(replyAt(reply, 8)), replyNumber(replyAt(reply, 9))},
	}
	var text strings.Builder
	list := func(i int) (rows [][]string) {
		for _, row := range replyList(replyAt(reply, i)) {
			text.WriteString(replyText(row))
			text.WriteByte('\n')
			rows = append(rows, strings.Split(replyText(row), " "))
		}
		text.WriteByte('\n')
		return rows
	}
	jobID := func(s string) JobID {
		id, _, _ := strings.Cut(s, ":")
		parsed, _ := ParseJobID(id)
		return parsed
	}
	for _, row := range list(0) {
		d.entries[row[0]] = jobID(row[1])
	}
	for _, row := range list(1) {
		d.holders[row[0]], d.counts[row[0]] = row[1], row[2]
	}
	for _, row := range list(2) {
		d.delayed = append(d.delayed, jobID(row[0]))
	}
	for _, row := range list(3) {
		d.dead[row[0]] = jobID(row[1])
	}
	for _, row := range list(4) {
		d.verdicts = append(d.verdicts, row[0])
	}
	d.queue = text.String()
	for i, row := range replyList(replyAt(reply, 7)) {
		d.outcomes[jobs[i]] = outcomeDump{
			status: Status(replyText(replyAt(row, 0))), ttl: replyNumber(replyAt(row, 1)), tokenTTL: replyNumber(replyAt(row, 2)),
			value: replyText(replyAt(row, 3)),
		}
	}
	return d, nil
}

// places counts where a job is: in the stream, delayed, dead.
func (d *dump) places(id JobID) (stream, delayed, dead int) {
	for _, job := range d.entries {
		if job == id {
			stream++
		}
	}
	for _, job := range d.delayed {
		if job == id {
			delayed++
		}
	}
	for _, job := range d.dead {
		if job == id {
			dead++
		}
	}
	return stream, delayed, dead
}

var errReplyLost = errors.New("the reply was lost on the way")

// wire stands between the runtime and Redis: it notes which scripts ran, runs them twice where a client would send them
// again after a lost reply, or loses the reply.
type wire struct {
	twice, lose bool
	loseRead    bool // of reads that go with flushes
	ran         []ranScript
	reads       int    // that went with flushes
	beforeClaim func() // once
}

type ranScript struct {
	sha string
	job string
}

func (w *wire) reset() { *w = wire{reads: w.reads} }

func (w *wire) DialHook(next redis.DialHook) redis.DialHook { return next }

func (w *wire) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if f := w.beforeClaim; f != nil && (cmd.Name() == "set" || cmd.Name() == "evalsha" && cmd.Args()[1] == claimScript.sha) {
			w.beforeClaim = nil
			f()
		}
		script := w.note(cmd)
		if !script && cmd.Name() != "xreadgroup" {
			return next(ctx, cmd)
		}
		err := next(ctx, cmd)
		if w.twice && script {
			cmd.SetErr(nil)
			err = next(ctx, cmd)
		}
		if w.lose {
			err = errReplyLost
			cmd.SetErr(err)
		}
		return err
	}
}

func (w *wire) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		scripts := true
		for _, cmd := range cmds {
			scripts = w.note(cmd) && scripts
		}
		err := next(ctx, cmds)
		if w.twice && scripts {
			for _, cmd := range cmds {
				cmd.SetErr(nil)
			}
			err = next(ctx, cmds)
		}
		for _, cmd := range cmds {
			if cmd.Name() == "xreadgroup" && cmds[0].Name() == "evalsha" { // a read behind a flush of endings
				w.reads++
				if w.loseRead {
					cmd.SetErr(errReplyLost)
				}
			}
		}
		return err
	}
}

// note records a call of one of the runtime's scripts, and reports whether it is one, or what does a script's work.
func (w *wire) note(cmd redis.Cmder) bool {
	args := cmd.Args()
	if cmd.Name() == "set" { // a claim of a free key
		return true
	}
	if cmd.Name() != "evalsha" || len(args) < 5 {
		return false
	}
	sha, _ := args[1].(string)
	if sha == dumpScript.Hash() {
		return false
	}
	job, _ := args[4].(string) // the first argument of scripts with one key
	w.ran = append(w.ran, ranScript{sha, job})
	return true
}
