package smallage

import (
	"errors"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// addCalls adds the scripts of an ending's current step.
func (x *endings) addCalls(calls []*scriptCall, e *ending) []*scriptCall {
	s, k := x.s, e.queue.keys
	if e.v != nil && e.v.Reason != ReasonValue && (e.step == stepOutcome || e.step == stepUnclaim) && !s.leaseFresh(e.d) {
		// Another worker may hold the entry by now. Only its holder may touch other slots, so ask again.
		e.step, e.after = stepVerdict, e.step
	}
	if e.step == stepOutcome {
		return append(calls, x.outcomeCall(e))
	}
	id := e.d.env.id.String()
	switch e.step {
	case stepDone:
		calls = append(calls, newCall(doneScript, []string{s.keys.dedup(e.d.env.dedup)}, id, s.dedupTTL(e.d).Milliseconds()))
		if e.d.env.resultTTL > 0 && !s.onCluster() {
			calls = append(calls, x.outcomeCall(e))
		}
		return calls
	case stepExtend:
		delay := e.delay
		if delay < 0 {
			delay = longestPutBack
		}
		ttl := s.claimTTL(e.d, delay).Milliseconds()
		return append(calls, newCall(extendScript, []string{s.keys.dedup(e.d.env.dedup)}, id, ttl, ttl))
	case stepRetry:
		e.d.ending.Store(true)
		args := []any{
			s.consumer, e.entry, id, e.delay.Milliseconds(), s.cfg.UnknownTaskTTL.Milliseconds(), tickEvery.Milliseconds(),
		}
		if e.delay >= 0 {
			args = append(args, fieldAttempt, strconv.Itoa(e.d.env.attempt+1), fieldHistory, e.history)
		} else {
			args[3] = -1
		}
		return append(calls, newCall(retryScript, []string{k.stream, k.delayed, k.delayedJobs}, args...))
	case stepVerdict:
		return append(calls, newCall(verdictScript, []string{k.stream, k.verdict}, s.consumer, e.entry, e.v.encode(), 0))
	case stepUnclaim:
		return append(calls, newCall(unclaimScript, []string{s.keys.dedup(e.d.env.dedup)}, id))
	case stepFinish:
		e.d.ending.Store(true)
		jobID := ""
		if !e.d.env.id.IsZero() {
			jobID = id
		}
		args := []any{s.consumer, e.entry, e.v.Death, jobID, s.cfg.MaxDead}
		if e.v.Death != "" {
			args = append(args, fieldDeadReason, string(e.v.Reason), fieldDeadError, e.v.Error, fieldRuns, strconv.Itoa(e.v.Runs))
			if e.v.History != "" {
				args = append(args, fieldHistory, e.v.History)
			}
		}
		return append(calls, newCall(finishScript, []string{k.stream, k.verdict, k.dead, k.deadJobs, k.deadIDs}, args...))
	}
	return calls
}

// longestPutBack is the longest delay of a job whose task is unknown, as retry.lua sets it.
const longestPutBack = 30 * time.Second

// The fields that a burial adds to a job's own.
var burialFields = []string{fieldDeadReason, fieldDeadError, fieldDiedAt, fieldRuns}

const (
	fieldDeadReason = "dead_reason"
	fieldDeadError  = "dead_error"
	fieldDiedAt     = "died_at"
	fieldRuns       = "runs"
)

// next moves a verdict's ending on to the step after the current one, leaving out what the job does not need.
func (e *ending) next() {
	switch {
	case e.step < stepVerdict: // the outcome
		e.step = stepUnclaim
	case e.step == stepVerdict && e.after != 0:
		e.step, e.after = e.after, 0
		return
	case e.step == stepVerdict:
		e.step = stepOutcome
	case e.step == stepUnclaim:
		e.step = stepFinish
	}
	if e.step == stepOutcome && (e.d.env.resultTTL <= 0 || e.d.env.id.IsZero()) {
		e.step = stepUnclaim
	}
	if e.step == stepUnclaim && (e.d.env.dedup == "" || e.status == StatusDuplicate || e.d.env.id.IsZero()) {
		e.step = stepFinish
	}
}

// advance moves an ending on by the replies of its step.
func (x *endings) advance(e *ending, calls []*scriptCall) {
	s := x.s
	reply := calls[0].reply
	switch e.step {
	case stepDone:
		if state := replyText(reply); state != "" {
			s.claimLost(e.d, state)
		}
		e.step = stepAck
		if e.d.env.resultTTL > 0 && len(calls) == 1 {
			e.step = stepOutcome
		}
	case stepOutcome:
		if e.v == nil || e.v.Reason == ReasonValue {
			e.step = stepAck
		} else {
			e.next()
		}
	case stepExtend:
		state := replyText(reply)
		if state == doneBy(e.d.env.id) { // a worker that was cut off from this entry has finished the job
			x.asDone(e)
			return
		}
		if state != "kept" && e.d.claimed.Swap(false) {
			s.claimLost(e.d, state)
		}
		e.step = stepRetry
	case stepRetry:
		x.retried(e, reply)
	case stepVerdict:
		if replyText(replyAt(reply, 0)) != "set" {
			x.refused(e, replyText(replyAt(reply, 0)))
			return
		}
		e.d.renewed.Store(since(calls[0].sent))
		if standing := decodeVerdict(replyText(replyAt(reply, 1))); standing != nil {
			e.v, e.status = standing, standing.Status
		}
		e.next()
	case stepUnclaim:
		e.next()
	case stepFinish:
		x.finished(e, reply)
	}
}

func (x *endings) retried(e *ending, reply any) {
	switch state := replyText(replyAt(reply, 0)); state {
	case "moved":
		if e.delay < 0 {
			delay := time.Duration(replyNumber(replyAt(reply, 1))) * time.Millisecond
			x.s.observe(Event{Kind: EventPutBack, Job: e.d.info(), Delay: delay})
		}
		e.step = stepOver
	case "unknown":
		e.d.ending.Store(false)
		err := errors.New("no worker knew the task " + strconv.Quote(shorten(e.d.env.task)) + " for " +
			(time.Duration(replyNumber(replyAt(reply, 1))) * time.Millisecond).String())
		x.s.bury(e.d, ReasonUnknownTask, err)
		// The burial is an ending of its own and lets go of the entry; this one only counts itself out.
		e.d, e.step = nil, stepOver
	default:
		x.refused(e, state)
	}
}

// refused ends an ending that is no longer this worker's to carry out.
func (x *endings) refused(e *ending, state string) {
	if state == "stale" {
		x.s.stale(e.d)
	}
	e.step = stepOver
}

func (x *endings) finished(e *ending, reply any) {
	s := x.s
	state := replyText(replyAt(reply, 0))
	if state == "stale" {
		x.refused(e, state)
		return
	}
	e.step = stepOver
	info := e.d.info()
	err := e.err
	if err == nil {
		err = errors.New(e.v.Error)
	}
	switch e.status {
	case StatusFailed:
		s.log.Error("smallage: job is dead", "task", e.d.env.task, "job", e.d.env.id, "queue", e.queue.name, "reason", e.v.Reason, "error", e.v.Error)
		s.observe(Event{Kind: EventDead, Job: info, Err: err, Reason: e.v.Reason})
	case StatusDuplicate:
		owner, _ := ParseJobID(e.v.Owner)
		s.observe(Event{Kind: EventSkipped, Job: info, Key: e.d.env.dedup, Owner: owner})
	case StatusExpired:
		s.observe(Event{Kind: EventExpired, Job: info})
	case StatusCancelled:
		s.observe(Event{Kind: EventCancelled, Job: info})
	case StatusOK:
	}
	if dropped := int(replyNumber(replyAt(reply, 1))); dropped > 0 {
		s.log.Warn("smallage: the dead letter queue is full; its oldest jobs were dropped", "queue", e.queue.name, "dropped", dropped, "limit", s.cfg.MaxDead)
		s.observe(Event{Kind: EventDropped, Job: JobInfo{Queue: e.queue.name}, Count: dropped})
	}
}

func (x *endings) outcomeCall(e *ending) *scriptCall {
	env := &e.d.env
	o := outcome{id: env.id, ttl: env.resultTTL, status: e.status, finished: e.queue.redisTime(), task: env.task, attempts: env.attempt}
	var few [8]any
	more := few[:0]
	if e.v != nil {
		o.attempts = e.v.Runs
		more = append(more, "error", e.v.Error)
		for _, optional := range [][2]string{{"reason", string(e.v.Reason)}, {"owner", e.v.Owner}, {"death", e.v.Death}} {
			if optional[1] != "" {
				more = append(more, optional[0], optional[1])
			}
		}
	} else {
		if e.value != nil {
			more = append(more, "value", e.value)
		}
		if e.lost {
			more = append(more, "lost", "1")
		}
	}
	return o.call(x.s.keys, more)
}

// outcome is what every outcome has.
type outcome struct {
	id       JobID
	ttl      time.Duration
	status   Status
	finished int64 // in ms, by Redis's clock
	task     string
	attempts int
}

// call writes the outcome, and more fields of it: name and text in turn, each a string or bytes.
func (o *outcome) call(keys *keyspace, more []any) *scriptCall {
	result, token, notice := keys.outcome(o.id)
	call := newCall(outcomeScript, []string{result, token},
		o.ttl.Milliseconds(), string(o.status), notice, o.notice(more), o.finished, o.task, o.attempts)
	call.args = append(call.args, more...)
	return call
}

// largestNotice is the largest outcome that travels in its notice, in bytes.
const largestNotice = 1024

// notice packs an outcome as job.lua's pack does. One that is too large for a notice tells its status alone.
func (o *outcome) notice(more []any) []byte {
	packed := make([]byte, 0, 128)
	for _, text := range [...]string{"status", string(o.status), "task", o.task} {
		packed = appendPacked(packed, text)
	}
	packed = appendPackedNumber(appendPacked(packed, "finished_at"), o.finished)
	packed = appendPackedNumber(appendPacked(packed, "attempts"), int64(o.attempts))
	for _, text := range more {
		switch text := text.(type) {
		case string:
			packed = appendPacked(packed, text)
		case []byte:
			packed = appendPacked(packed, text)
		}
	}
	if len(packed) > largestNotice {
		return []byte(o.status)
	}
	return packed
}

func appendPackedNumber(packed []byte, n int64) []byte {
	var digits [20]byte
	return appendPacked(packed, strconv.AppendInt(digits[:0], n, 10))
}

// appendPacked stops where a text makes the notice too large.
func appendPacked[T string | []byte](packed []byte, text T) []byte {
	packed = append(strconv.AppendInt(packed, int64(len(text)), 10), ':')
	return append(packed, text[:min(len(text), largestNotice)]...)
}

// leaseFresh holds while no other worker can have taken the entry over: the last confirmed renewal is younger than the
// lease less a margin for clocks that run apart and for the flush itself.
func (s *session) leaseFresh(d *delivery) bool {
	return since(time.Now())-d.renewed.Load() < int64(s.cfg.Lease/4*3)
}

func (s *session) onCluster() bool {
	_, cluster := s.rdb.(*redis.ClusterClient)
	return cluster
}
