package smallage

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// envelopeVersion is the newest form of a stream entry that this runtime writes and understands.
const envelopeVersion = 1

// The fields of a stream entry. Unknown fields are carried along by the scripts that move jobs.
const (
	fieldVersion      = "v"
	fieldID           = "id"
	fieldTask         = "task"
	fieldArgs         = "args"
	fieldEnqueuedAt   = "enqueued_at" // ms, the client's clock: shown, never compared
	fieldAttempt      = "attempt"     // of the run to come, from 1
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
	enqueuedAt time.Time
	attempt    int
	dedup      string
	resultTTL  time.Duration
	expiresAt  int64 // ms, 0: never
	headers    map[string]string
	history    string
}

// appendFields lists the fields of a fresh job in the order of every entry, which lets Redis store their names once.
func appendFields(fields []any, job *Job, id string, now time.Time) ([]any, error) {
	fields = append(fields,
		fieldVersion, "1",
		fieldID, id,
		fieldTask, job.Task,
		fieldArgs, []byte(job.Args),
		fieldEnqueuedAt, strconv.FormatInt(now.UnixMilli(), 10),
		fieldAttempt, "1")
	if job.Dedup != "" {
		fields = append(fields, fieldDedup, job.Dedup)
	}
	if job.ResultTTL > 0 {
		fields = append(fields, fieldResultTTL, strconv.FormatInt(job.ResultTTL.Milliseconds(), 10))
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

// decodeFields reads an entry's fields, name and value in turn. What can be read is filled in even beside an error, so that
// a malformed job can still be reported to whoever waits for it. Of the fields it keeps copies, but for the task's name.
func decodeFields(fields []string) (envelope, error) {
	e := envelope{attempt: 1, enqueuedAt: time.UnixMilli(0)}
	var problems []error
	number := func(name, value string, least int64) int64 {
		if value == "" {
			return 0
		}
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < least {
			problems = append(problems, fmt.Errorf("field %s is %q, want a whole number of at least %d", name, shorten(value), least))
			return 0
		}
		return n
	}
	var id, version, headers string
	if len(fields) > 2*maxFields {
		problems = append(problems, fmt.Errorf("%d fields, at most %d", len(fields)/2, maxFields))
	}
	for i := 0; i+1 < len(fields); i += 2 {
		switch name, value := fields[i], fields[i+1]; name {
		case fieldVersion:
			version = value
			e.version = int(number(name, value, 1))
		case fieldID:
			id = value
		case fieldTask:
			e.task = value
		case fieldArgs:
			e.args = []byte(value)
		case fieldEnqueuedAt:
			e.enqueuedAt = time.UnixMilli(number(name, value, 0))
		case fieldAttempt:
			e.attempt = max(int(number(name, value, 1)), 1)
		case fieldDedup:
			e.dedup = strings.Clone(value)
		case fieldResultTTL:
			e.resultTTL = time.Duration(number(name, value, 0)) * time.Millisecond
		case fieldExpiresAt:
			e.expiresAt = number(name, value, 0)
		case fieldHeaders:
			headers = value
		case fieldHistory:
			e.history = strings.Clone(value)
		}
	}
	var err error
	if e.id, err = ParseJobID(id); err != nil {
		problems = append(problems, fmt.Errorf("field id: %w", err))
	}
	if e.task == "" {
		problems = append(problems, errors.New("field task is missing"))
	}
	if version == "" {
		problems = append(problems, errors.New("field v is missing"))
	}
	if len(e.args) == 0 {
		problems = append(problems, errors.New("field args is missing"))
	}
	if len(e.dedup) > MaxDedupKeyBytes {
		problems = append(problems, fmt.Errorf("field dedup has %d bytes, at most %d", len(e.dedup), MaxDedupKeyBytes))
		e.dedup = ""
	}
	if headers != "" {
		if err := json.Unmarshal([]byte(headers), &e.headers); err != nil {
			problems = append(problems, fmt.Errorf("field headers: %w", err))
		}
	}
	if e.version > envelopeVersion && len(fields) <= 2*maxFields {
		return e, nil // a newer worker understands it; only that is known of it here
	}
	if len(problems) == 0 {
		return e, nil
	}
	return e, errors.Join(problems...)
}
