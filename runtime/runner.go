package smallage

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// startRunner begins one of the goroutines that run jobs, one after another.
func (s *session) startRunner() {
	s.runners.Add(1)
	go func() {
		clean := false
		defer func() {
			if !clean {
				s.startRunner() // a handler called Goexit, which ends its goroutine; its job was settled on the way
			}
			s.runners.Done()
		}()
		for d := s.hold.next(); d != nil; d = s.hold.next() {
			s.process(d)
		}
		clean = true
	}()
}

// process brings one entry to its ending. Everything here may run again elsewhere: nothing is done that a second time
// would make wrong.
func (s *session) process(d *delivery) {
	point("picked")
	switch {
	case d.prior != nil:
		s.endings.resume(d, d.prior)
		return
	case d.bad != nil:
		s.buryUnlessDone(d, ReasonMalformed, fmt.Errorf("malformed entry: %w", d.bad))
		return
	case d.count > s.cfg.MaxDeliveries:
		s.lostTooOften(d)
		return
	case d.task == nil || d.env.version > envelopeVersion:
		s.endings.putBack(d)
		return
	case s.cancelled(d):
		return
	case d.env.expiresAt > 0 && d.first() && s.expired(d):
		return
	}
	run, err := d.task.prepare(d.env.args)
	d.env.args = nil // a long job must not keep the reply that brought many
	if err != nil {
		s.buryUnlessDone(d, ReasonMalformed, err)
		return
	}
	if !s.confirmLease(d) || d.env.dedup != "" && !s.claim(d) {
		return
	}
	if s.hold.gone() { // Redis was away until after the drain
		s.handBack(map[*queueState][]*delivery{d.queue: {d}})
		return
	}
	point("claimed")
	s.execute(d, run)
}

// lostTooOften ends a job that was lost with its worker too often.
func (s *session) lostTooOften(d *delivery) {
	s.buryUnlessDone(d, ReasonDeliveries, fmt.Errorf("lost with its worker %d times: the worker was killed, hung or cut off while it held the job", d.count-1))
}

// buryUnlessDone ends a job in the dead letter queue, unless it had succeeded before it came here again.
func (s *session) buryUnlessDone(d *delivery, reason Reason, err error) {
	switch done, ok := s.isDone(d); {
	case !ok:
	case done:
		s.endings.already(d)
	default:
		s.bury(d, reason, err)
	}
}

// bury ends a job in the dead letter queue.
func (s *session) bury(d *delivery, reason Reason, err error) {
	s.endings.end(d, &verdict{
		Status: StatusFailed, Reason: reason, Error: cut(err.Error(), errorSize), Death: newDeathID(),
		Runs: d.env.attempt - 1, History: d.env.history,
	}, err)
}

// expired ends a job that was not started in time, by Redis's clock, and reports whether it did.
func (s *session) expired(d *delivery) bool {
	v := &verdict{Status: StatusExpired, Error: "not started in time", Runs: d.env.attempt - 1}
	for {
		sent := time.Now()
		reply, err := s.scripts.run(newCall(verdictScript, []string{d.queue.keys.stream, d.queue.keys.verdict},
			s.consumer, d.entry, v.encode(), d.env.expiresAt))
		if err != nil {
			if !s.holdOn(d, err) {
				return true
			}
			continue
		}
		switch replyText(replyAt(reply, 0)) {
		case "early":
			return false
		case "set":
			d.renewed.Store(since(sent))
			point("expired")
			s.endings.resume(d, v)
		default:
			s.stale(d)
		}
		return true
	}
}

// holdOn waits after an error before a step is tried again. It reports false where the entry is no longer this worker's
// or the worker stops: then the entry stays pending for whoever comes next.
func (s *session) holdOn(d *delivery, err error) bool {
	s.outage.failed(err)
	timer := time.NewTimer(backoff(100*time.Millisecond, time.Second, 1))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.stopping:
		s.handBack(map[*queueState][]*delivery{d.queue: {d}})
		return false
	}
	if d.lost.Load() {
		s.hold.drop(d)
		return false
	}
	return true
}

// callHandler is the innermost Handler.
func callHandler(ctx context.Context, _ JobInfo) ([]byte, error) {
	run, _ := ctx.Value(callKey{}).(call)
	if run == nil {
		return nil, errors.New("smallage: a middleware replaced the handler's context; derive from the one it was given")
	}
	return run(ctx)
}

// execute calls the handler and settles what came of it, also where the handler leaves by a panic or Goexit.
func (s *session) execute(d *delivery, run call) {
	job, info := &d.handler, d.info()
	job.init(s.base, d, run)
	defer job.end(nil)
	var ctx context.Context = job
	if d.task.timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, d.task.timeout, ErrTimeout)
		defer stop()
	}
	s.hold.started(d, ctx, job)
	var begin time.Time
	if s.cfg.Observer != nil {
		s.observe(Event{Kind: EventStarted, Job: info})
		begin = time.Now()
	}
	var value []byte
	err := errGoexit
	var crash *panicError
	returned := false
	defer func() {
		if !returned {
			if p := recover(); p != nil {
				crash = newPanicError(p)
				err = crash
			} else {
				crash = newPanicError(errGoexit)
				crash.text = errGoexit.Error()
			}
		}
		s.hold.returned(d)
		var took time.Duration
		if s.cfg.Observer != nil {
			took = time.Since(begin)
		}
		s.settle(ctx, d, value, err, crash, took)
	}()
	point("starting")
	value, err = s.handler(ctx, info)
	point("returned")
	err = readable(err)
	returned = true
}

// settle decides the ending of a run.
func (s *session) settle(ctx context.Context, d *delivery, value []byte, err error, crash *panicError, took time.Duration) {
	if d.dropped.Load() {
		s.hold.drop(d)
		return // handed back while it ran
	}
	if err == nil {
		s.succeeded(d, value, "", took)
		return
	}
	var unkept *valueError
	if errors.As(err, &unkept) {
		s.succeeded(d, nil, unkept.Error(), took)
		return
	}
	cause := context.Cause(ctx)
	switch cause {
	case ErrShutdown:
		s.handBack(map[*queueState][]*delivery{d.queue: {d}})
		return
	case ErrLeaseLost:
		s.hold.drop(d)
		return
	}
	stack := ""
	if crash != nil {
		stack = crash.stack
	}
	history := appendAttempt(d.env.history, Attempt{Time: time.Now().UTC().Truncate(time.Millisecond), Worker: s.consumer, Error: err.Error(), Stack: stack})
	if cause == ErrCancelled {
		s.endCancelled(d, d.env.attempt, history)
		return
	}
	var buried *buryError
	if errors.As(err, &buried) || d.env.attempt >= d.task.attempts {
		reason := ReasonAttempts
		text := fmt.Sprintf("%s (attempt %d of %d)", err, d.env.attempt, d.task.attempts)
		if buried != nil {
			reason, text = ReasonBuried, fmt.Sprintf("%s (buried by the handler in attempt %d)", err, d.env.attempt)
		}
		s.endings.end(d, &verdict{
			Status: StatusFailed, Reason: reason, Error: cut(text, errorSize), Death: newDeathID(),
			Runs: d.env.attempt, History: history,
		}, err)
		return
	}
	delay := backoff(d.task.backoff, d.task.longest, d.env.attempt)
	var after *retryError
	if errors.As(err, &after) {
		delay = after.delay
	}
	s.observe(Event{Kind: EventRetried, Job: d.info(), Err: err, Took: took, Delay: delay})
	s.endings.retry(d, delay, history)
}

// succeeded ends a job whose handler has done its work. unkept says why its value cannot be stored, where it cannot.
func (s *session) succeeded(d *delivery, value []byte, unkept string, took time.Duration) {
	if s.cfg.Observer != nil {
		s.observe(Event{Kind: EventDone, Job: d.info(), Took: took})
	}
	s.endings.done(d, value, unkept)
}

// stale reports an ending that was refused because another worker holds the entry.
func (s *session) stale(d *delivery) {
	if !d.lost.Swap(true) {
		s.leaseLost(d)
	}
	s.hold.drop(d)
}
