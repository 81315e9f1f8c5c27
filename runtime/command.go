package smallage

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// command makes a bare XADD for a job that runs now, and a script for one that a bare XADD cannot express.
func (c *Client) command(ctx context.Context, job *Job, room *commandRoom, brought bool) (*onceCmd, error) {
	k := c.keys.queue(job.Queue)
	delay, at := max(job.Delay.Milliseconds(), 0), int64(0)
	if job.Delay > 0 && delay == 0 {
		delay = 1
	}
	if !job.At.IsZero() {
		at = max(job.At.UnixMilli(), 1)
	}
	script := brought || delay > 0 || at > 0 || job.ExpiresIn > 0
	size := plainCommandArgs
	if job.Dedup != "" || job.ResultTTL > 0 || len(job.Headers) > 0 {
		size += 6
	}
	if script {
		size += 10
	}
	args := room.arguments(size)
	if script {
		id := job.ID.String()
		window, marker := int64(0), k.stream
		if brought {
			window, marker = c.cfg.IDWindow.Milliseconds(), k.id+id
		}
		args = append(args, "EVALSHA", enqueueScript.sha, 4, k.streamArg, k.delayed, k.delayedJobs, marker,
			id, window, delay, at, job.ExpiresIn.Milliseconds(), tickEvery.Milliseconds())
	} else {
		args = append(args, "XADD", k.streamArg, "*")
	}
	cmd := room.command()
	cmd.text = jobText{job: job, enqueuedAt: room.enqueuedAt()}
	args, err := appendFields(args, job, &cmd.text)
	if err != nil {
		return nil, err
	}
	cmd.set(ctx, args, script)
	cmd.size = len(job.Args) + len(job.Dedup) + 200*(1+len(job.Headers))
	return cmd, nil
}

// plainCommandArgs is how many arguments the XADD of a job without options has.
const plainCommandArgs = 5

// commandRoom is memory for the commands of some jobs, and what they share. The zero value serves for one.
type commandRoom struct {
	args []any
	cmds []onceCmd
	now  int64 // enqueued_at, ms
}

// newCommandRoom has room for n plain commands.
func newCommandRoom(n int) *commandRoom {
	return &commandRoom{args: make([]any, 0, n*plainCommandArgs), cmds: make([]onceCmd, 0, n)}
}

// arguments is an empty list with room for n.
func (r *commandRoom) arguments(n int) []any {
	from := len(r.args)
	if cap(r.args)-from < n {
		return make([]any, 0, n)
	}
	r.args = r.args[:from+n]
	return r.args[from : from : from+n]
}

func (r *commandRoom) command() *onceCmd {
	n := len(r.cmds)
	if n == cap(r.cmds) {
		return new(onceCmd)
	}
	r.cmds = r.cmds[:n+1]
	return &r.cmds[n]
}

func (r *commandRoom) enqueuedAt() int64 {
	if r.now == 0 {
		r.now = time.Now().UnixMilli()
	}
	return r.now
}

// onceCmd is a command that go-redis must not send again by itself: its first sending may have worked.
type onceCmd struct {
	redis.StringCmd
	text   jobText // which the arguments point to
	script bool
	size   int // in bytes, roughly
}

// NoRetry keeps go-redis from sending the command again after an error.
func (*onceCmd) NoRetry() bool { return true }

// outcome is the command's error. A flush that breaks off gives its error to all of its commands, also to those whose
// reply had come: they have worked.
func (c *onceCmd) outcome() error {
	if c.Val() != "" {
		return nil
	}
	return c.Err()
}

func (c *onceCmd) unknownScript() bool {
	return c.script && c.Val() == "" && redis.HasErrorPrefix(c.Err(), "NOSCRIPT")
}

// setWhole makes it the same command with the script's text, for a server that does not know it.
func (c *onceCmd) setWhole(ctx context.Context) {
	c.set(ctx, append([]any{"EVAL", enqueueScript.source}, c.Args()[2:]...), true)
}

func (c *onceCmd) set(ctx context.Context, args []any, script bool) {
	c.StringCmd, c.script = *redis.NewStringCmd(ctx, args...), script
	if script {
		c.SetFirstKeyPos(3)
	}
}
