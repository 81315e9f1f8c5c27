package smallage

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"time"
)

// delivery is one stream entry in a worker's hand.
type delivery struct {
	queue *queueState
	entry string // the entry's id in the stream
	count int    // how often the current entry was delivered; more than 1 where workers were lost with it
	env   envelope
	bad   error  // why the entry is malformed
	task  *Entry // nil: unknown here
	prior *verdict

	// renewed is when the last confirmed renewal of the lease was sent, in ns since the worker's start.
	renewed atomic.Int64
	lost    atomic.Bool // another worker may hold the entry
	dropped atomic.Bool // handed back while its handler was still running: its return is ignored
	ending  atomic.Bool // the acknowledge is on its way
	claimed atomic.Bool // this job holds its dedup key

	// Of the running handler; guarded by hold.mu.
	ctx context.Context
	job *jobContext // nil where none runs

	// Kept here, since most jobs need one of each.
	handler jobContext
	success ending

	overdue bool // its context had ended at the last look
	stuck   bool // reported
}

// first holds for a job that nobody had before: no attempt of it ended, and none was lost with its worker.
func (d *delivery) first() bool { return d.env.attempt == 1 && d.count == 1 }

// suspect holds for entries that were lost so often that they may be what kills workers.
func (d *delivery) suspect() bool { return d.count > d.queue.harmless }

func (d *delivery) info() JobInfo {
	return JobInfo{
		ID: d.env.id, Task: d.env.task, Queue: d.queue.name, Attempt: d.env.attempt, Delivery: d.count,
		Headers: d.env.headers, EnqueuedAt: time.UnixMilli(d.env.enqueuedAt),
	}
}

var processStart = time.Now()

// since is the monotonic time of the process, which unlike the wall clock never jumps.
func since(t time.Time) int64 { return int64(t.Sub(processStart)) }

// verdict is how an entry ends, recorded before it is carried out so that whoever takes the entry over completes it.
type verdict struct {
	Status  Status `json:"status"`
	Reason  Reason `json:"reason,omitempty"`
	Error   string `json:"error,omitempty"`
	Owner   string `json:"owner,omitempty"`
	Death   string `json:"death,omitempty"` // names the burial; empty where the job is not dead
	Runs    int    `json:"runs"`            // ended runs of the handler
	History string `json:"history,omitempty"`
}

func (v *verdict) encode() string {
	encoded, err := json.Marshal(v)
	if err != nil {
		return "{}" // strings and numbers always encode
	}
	return string(encoded)
}

func decodeVerdict(s string) *verdict {
	var v verdict
	if err := json.Unmarshal([]byte(s), &v); err != nil || v.Status == "" {
		return nil
	}
	return &v
}

// decode fills a delivery from an entry. Of what was read it keeps the arguments, and else copies.
func (s *session) decode(d *delivery, q *queueState, e entry, count int64, prior string, sent time.Time) {
	d.queue, d.entry, d.count = q, string(e.id), int(max(count, 1))
	d.bad = d.env.decode(e.fields, s.tasks)
	d.task = s.tasks[d.env.task]
	if prior != "" {
		d.prior = decodeVerdict(prior)
	}
	d.renewed.Store(since(sent))
}

// takenEntries decodes what a script took over: {id, count, {field, value…}, verdict}.
func (s *session) takenEntries(q *queueState, reply any, sent time.Time) []*delivery {
	rows := replyList(reply)
	taken, all := make([]*delivery, 0, len(rows)), make([]delivery, len(rows))
	for i, row := range rows {
		e := entry{id: []byte(replyText(replyAt(row, 0)))}
		for _, text := range replyList(replyAt(row, 2)) {
			e.fields = append(e.fields, []byte(replyText(text)))
		}
		s.decode(&all[i], q, e, replyNumber(replyAt(row, 1)), replyText(replyAt(row, 3)), sent)
		taken = append(taken, &all[i])
	}
	return taken
}
