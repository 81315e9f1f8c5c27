package smallage

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// envelopeVersion is the newest form of a stream entry that this runtime writes and understands.
const envelopeVersion = 1

// The fields of a stream entry. What every job has is one field, in this order with a space between: v, id, enqueued_at,
// task, args. A field costs Redis as much as all the bytes of a small job. Each may also be a field of its own, which then
// counts. Unknown fields are carried along by the scripts that move jobs.
const (
	fieldJob          = "job"
	fieldVersion      = "v"
	fieldID           = "id"
	fieldEnqueuedAt   = "enqueued_at" // ms, the client's clock: shown, never compared
	fieldTask         = "task"
	fieldArgs         = "args"
	fieldAttempt      = "attempt" // of the run to come, from 1; a fresh job has none
	fieldDedup        = "dedup"
	fieldResultTTL    = "result_ttl_ms"
	fieldExpiresAt    = "expires_at" // ms, Redis's clock
	fieldUnknownSince = "unknown_since"
	fieldHeaders      = "headers" // JSON object of strings
	fieldHistory      = "history" // JSON array of attempts
	fieldWake         = "wake"    // an entry without a job, which wakes a sleeping worker
)

// maxFields is how many fields a job may have: scripts pass them as arguments, of which Lua takes some thousands.
const maxFields = 1000

// envelope is a decoded stream entry.
type envelope struct {
	version    int
	id         JobID
	task       string
	args       []byte
	enqueuedAt int64 // ms
	attempt    int
	dedup      string
	resultTTL  time.Duration
	expiresAt  int64 // ms, 0: never
	headers    map[string]string
	history    string
}

// jobText is the field job of a fresh job. It is written when the command is: of a batch, Redis works on the first jobs
// meanwhile.
type jobText struct {
	job        *Job
	enqueuedAt int64 // ms
	written    bool  // to a connection
}

// MarshalBinary is called by go-redis when it writes the command.
func (t *jobText) MarshalBinary() ([]byte, error) {
	t.written = true
	return t.bytes(), nil
}

func (t *jobText) bytes() []byte {
	task := t.task()
	text := make([]byte, 0, len("1 00000000-0000-0000-0000-000000000000 1700000000000  ")+len(task)+len(t.job.Args))
	text = strconv.AppendInt(text, envelopeVersion, 10)
	text = append(text, ' ')
	text = appendUUID(text, &t.job.ID.id)
	text = append(text, ' ')
	text = strconv.AppendInt(text, t.enqueuedAt, 10)
	text = append(text, ' ')
	text = append(text, task...)
	text = append(text, ' ')
	return append(text, t.job.Args...)
}

// String is for those who log commands.
func (t *jobText) String() string { return string(t.bytes()) }

// task is empty where its name has a space: such a task is a field of its own.
func (t *jobText) task() string {
	if strings.IndexByte(t.job.Task, ' ') >= 0 {
		return ""
	}
	return t.job.Task
}

// jobParts are the parts of a field job, as far as there are so many.
func jobParts(text []byte) (parts [5][]byte, n int) {
	for n < len(parts)-1 {
		space := bytes.IndexByte(text, ' ')
		if space < 0 {
			break
		}
		parts[n], text = text[:space], text[space+1:]
		n++
	}
	parts[n] = text
	return parts, n + 1
}

// appendFields lists the fields of a fresh job.
func appendFields(fields []any, job *Job, text *jobText) ([]any, error) {
	fields = append(fields, fieldJob, text)
	if text.task() != job.Task {
		fields = append(fields, fieldTask, job.Task)
	}
	if job.Dedup != "" {
		fields = append(fields, fieldDedup, job.Dedup)
	}
	if job.ResultTTL > 0 {
		fields = append(fields, fieldResultTTL, job.ResultTTL.Milliseconds())
	}
	if len(job.Headers) > 0 {
		headers, err := json.Marshal(job.Headers)
		if err != nil {
			return nil, fmt.Errorf("%w headers of task %s: %w", ErrInvalid, job.Task, err)
		}
		fields = append(fields, fieldHeaders, headers)
	}
	return fields, nil
}

// decode reads an entry's fields, name and value in turn. What can be read is filled in even beside an error, so that a
// malformed job can still be reported to whoever waits for it. Of what it is given it keeps the arguments, and else copies.
func (e *envelope) decode(fields [][]byte, known map[string]*Entry) error {
	*e = envelope{attempt: 1}
	var problems problems
	var id, headers []byte
	versioned := false
	if len(fields) > 2*maxFields {
		problems.add("%d fields, at most %d", len(fields)/2, maxFields)
	}
	version := func(value []byte) {
		versioned = len(value) > 0
		e.version = int(problems.number(fieldVersion, value, 1))
	}
	task := func(value []byte) {
		if task, ok := known[string(value)]; ok && task.name == string(value) {
			e.task = task.name
		} else {
			e.task = string(value)
		}
	}
	for i := 0; i+1 < len(fields); i += 2 {
		if string(fields[i]) != fieldJob {
			continue
		}
		parts, n := jobParts(fields[i+1])
		if n < len(parts) {
			problems.add("field job has %d of 5 parts: version, id, time, task, arguments", n)
		}
		version(parts[0])
		id = parts[1]
		e.enqueuedAt = problems.number(fieldEnqueuedAt, parts[2], 0)
		task(parts[3])
		e.args = parts[4]
		break
	}
	for i := 0; i+1 < len(fields); i += 2 { // a field of its own counts where there are both
		value := fields[i+1]
		switch string(fields[i]) {
		case fieldVersion:
			version(value)
		case fieldID:
			id = value
		case fieldTask:
			task(value)
		case fieldArgs:
			e.args = value
		case fieldEnqueuedAt:
			e.enqueuedAt = problems.number(fieldEnqueuedAt, value, 0)
		case fieldAttempt:
			e.attempt = max(int(problems.number(fieldAttempt, value, 1)), 1)
		case fieldDedup:
			e.dedup = string(value)
		case fieldResultTTL:
			e.resultTTL = time.Duration(problems.number(fieldResultTTL, value, 0)) * time.Millisecond
		case fieldExpiresAt:
			e.expiresAt = problems.number(fieldExpiresAt, value, 0)
		case fieldHeaders:
			headers = value
		case fieldHistory:
			e.history = string(value)
		}
	}
	var err error
	if e.id, err = parseJobID(id); err != nil {
		problems.add("field id: %w", err)
	}
	if e.task == "" {
		problems.add("field task is missing")
	}
	if !versioned {
		problems.add("field v is missing")
	}
	if len(e.args) == 0 {
		problems.add("field args is missing")
	}
	if len(e.dedup) > MaxDedupKeyBytes {
		problems.add("field dedup has %d bytes, at most %d", len(e.dedup), MaxDedupKeyBytes)
		e.dedup = ""
	}
	if len(headers) > 0 {
		if err := json.Unmarshal(headers, &e.headers); err != nil {
			problems.add("field headers: %w", err)
		}
	}
	if e.version > envelopeVersion && len(fields) <= 2*maxFields {
		return nil // a newer worker understands it; only that is known of it here
	}
	return errors.Join(problems...)
}

// problems are what is wrong with an entry.
type problems []error

func (p *problems) add(format string, args ...any) { *p = append(*p, fmt.Errorf(format, args...)) }

// number reads a whole number; an empty one is 0.
func (p *problems) number(name string, value []byte, least int64) int64 {
	if len(value) == 0 {
		return 0
	}
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil || n < least {
		p.add("field %s is %q, want a whole number of at least %d", name, shorten(string(value)), least)
		return 0
	}
	return n
}
