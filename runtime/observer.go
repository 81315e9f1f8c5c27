package smallage

import "time"

// Observer is told of what happens to jobs. Observe is called on the path of the work, concurrently: it must be quick
// and must not block. A nil Observer costs nothing.
type Observer interface {
	Observe(Event)
}

// EventKind says what happened.
type EventKind string

// What may happen to a job. Each is reported once for each time that it happens.
const (
	EventEnqueued  EventKind = "enqueued"   // by a Client
	EventStarted   EventKind = "started"    // the handler is about to be called
	EventDone      EventKind = "done"       // the handler returned nil; Took
	EventRetried   EventKind = "retried"    // an attempt failed and another follows; Err, Took, Delay
	EventDead      EventKind = "dead"       // buried; Err, Reason
	EventSkipped   EventKind = "skipped"    // another job holds the dedup key, or this one is done; Key, Owner
	EventExpired   EventKind = "expired"    // not started in time
	EventCancelled EventKind = "cancelled"  // by id
	EventReclaimed EventKind = "reclaimed"  // taken over from a worker whose lease ran out
	EventReleased  EventKind = "released"   // handed back at shutdown
	EventPutBack   EventKind = "put-back"   // no worker here knows the task; Delay
	EventLeaseLost EventKind = "lease-lost" // this worker may no longer end the job
	EventClaimLost EventKind = "claim-lost" // the dedup claim of a running job is gone or another's; Key, Owner
	EventStuck     EventKind = "stuck"      // the handler goes on although its context has ended
	EventDropped   EventKind = "dropped"    // older dead jobs were removed to keep the limit; Count
)

// Event is one thing that happened to one job. Fields that do not apply are zero.
type Event struct {
	Kind   EventKind
	Job    JobInfo
	Err    error
	Reason Reason
	Took   time.Duration // of the handler
	Delay  time.Duration // before the job is due again
	Key    string        // the dedup key
	Owner  JobID         // the job that holds it
	Count  int
}

// JobInfo is what a handler, a middleware or an observer may know of a job.
type JobInfo struct {
	ID         JobID
	Task       string // as the job names it: an alias, where it was enqueued under one
	Queue      string
	Attempt    int // from 1
	Delivery   int // of the current entry, from 1; more where workers were lost with it
	Headers    map[string]string
	EnqueuedAt time.Time // by the enqueuer's clock, to the millisecond
}
