package smallage

import (
	"context"
	"fmt"
	"time"
)

// Status is how a job ended.
type Status string

// The endings of a job. The zero Status belongs to the zero Result: no outcome.
const (
	StatusOK        Status = "ok"        // the handler returned without an error
	StatusFailed    Status = "failed"    // the job is in the dead letter queue, or its value could not be stored
	StatusDuplicate Status = "duplicate" // another job holds the dedup key; the handler was not called
	StatusExpired   Status = "expired"   // the job had not started when its time was over
	StatusCancelled Status = "cancelled" // the job was cancelled
)

// Result is the outcome of one job. The zero Result is no outcome.
type Result struct {
	ID     JobID
	Status Status

	// Value is what the handler returned; nil where it returned none or did not succeed.
	Value []byte

	// Error is the text of the last attempt's error and the reason why there was no further one; empty when OK.
	Error string

	// Reason is why a failed job is dead: attempts, deliveries, unknown-task, malformed, buried or value.
	Reason Reason

	// Task is the task's name on the wire.
	Task string

	// Attempts is how many runs of the handler were counted, the successful one included.
	Attempts int

	// FinishedAt is when the outcome was written, by Redis's clock as the worker knows it: to within a round trip.
	FinishedAt time.Time

	// Owner is, for a duplicate, the job that holds the key.
	Owner JobID

	// DeathID names the burial, for a job in the dead letter queue.
	DeathID string

	valueLost bool
}

// Reason is why a job is dead.
type Reason string

// The reasons for a death.
const (
	ReasonAttempts    Reason = "attempts"     // the task's attempts are spent
	ReasonDeliveries  Reason = "deliveries"   // it was lost with its worker too often (WorkerConfig.MaxDeliveries)
	ReasonUnknownTask Reason = "unknown-task" // no worker knew the task for WorkerConfig.UnknownTaskTTL
	ReasonMalformed   Reason = "malformed"    // the entry or its arguments could not be decoded
	ReasonBuried      Reason = "buried"       // the handler asked for it with Bury
	ReasonValue       Reason = "value"        // the handler succeeded, but its value could not be stored; not in the dead letter queue
)

// decodeResult reads the fields of an outcome; no fields are no outcome.
func decodeResult(id JobID, fields map[string]string) Result {
	if fields["status"] == "" {
		return Result{}
	}
	res := Result{
		ID: id, Status: Status(fields["status"]), Error: fields["error"], Reason: Reason(fields["reason"]),
		Task: fields["task"], Attempts: int(atoi(fields["attempts"])), FinishedAt: time.UnixMilli(atoi(fields["finished_at"])),
		DeathID: fields["death"], valueLost: fields["lost"] != "",
	}
	if value, ok := fields["value"]; ok {
		res.Value = []byte(value)
	}
	if owner := fields["owner"]; owner != "" {
		res.Owner, _ = ParseJobID(owner)
	}
	return res
}

// Missing reports whether there is no outcome: WaitAll marks so the jobs that had none in time.
func (r Result) Missing() bool { return r.Status == "" }

// OK reports whether the handler returned without an error.
func (r Result) OK() bool { return r.Status == StatusOK }

// Err returns nil where the job succeeded, and otherwise a *JobError that says how it ended.
func (r Result) Err() error {
	if r.OK() {
		return nil
	}
	return &JobError{ID: r.ID, Task: r.Task, Status: r.Status, Reason: r.Reason, Text: r.Error, Owner: r.Owner}
}

// JobError is an ending other than ok, as an error.
type JobError struct {
	ID     JobID
	Task   string
	Status Status
	Reason Reason
	Text   string // the last attempt's error
	Owner  JobID  // for a duplicate: the job that holds the key
}

// Error says how the job ended.
func (e *JobError) Error() string {
	switch e.Status {
	case StatusDuplicate:
		return fmt.Sprintf("smallage: job %s (%s) was skipped: job %s holds its dedup key", e.ID, e.Task, e.Owner)
	case StatusFailed:
		return fmt.Sprintf("smallage: job %s (%s) failed: %s", e.ID, e.Task, e.Text)
	}
	if e.Text == "" {
		return fmt.Sprintf("smallage: job %s (%s) ended %s", e.ID, e.Task, e.Status)
	}
	return fmt.Sprintf("smallage: job %s (%s) ended %s: %s", e.ID, e.Task, e.Status, e.Text)
}

// Results looks up outcomes. A Client is one; applications may write their own for tests of code that waits.
type Results interface {
	// Result looks once. It returns ErrNoResult where there is no outcome, or none any more.
	Result(ctx context.Context, id JobID) (Result, error)

	// Wait blocks until there is an outcome, ctx ends or the timeout has passed; 0 and less look once.
	// It returns ErrNoResult after the timeout, and ctx's error where ctx ended.
	Wait(ctx context.Context, id JobID, timeout time.Duration) (Result, error)
}
