package smallage

import (
	"log/slog"
	"sync"
	"time"
)

// outageLog reports the troubles of one connection without a line per failure: when one begins, every half minute while
// it lasts, and when it is over.
type outageLog struct {
	log  *slog.Logger
	what string

	mu       sync.Mutex
	since    time.Time // zero: no outage
	reported time.Time
	last     time.Time // failure
	failures int
}

const (
	outageEvery  = 30 * time.Second
	outageSettle = 5 * time.Second // longer than the pause between two tries
)

// failed counts a failure.
func (o *outageLog) failed(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	o.failures++
	o.last = now
	if o.since.IsZero() {
		o.since, o.reported = now, now
		o.log.Warn("smallage: "+o.what+": Redis does not answer; trying on, is it running and reachable?", "error", err)
		return
	}
	if now.Sub(o.reported) >= outageEvery {
		o.reported = now
		o.log.Warn("smallage: "+o.what+": Redis still does not answer", "error", err,
			"for", now.Sub(o.since).Round(time.Second), "failures", o.failures)
	}
}

// worked ends an outage once nothing has failed for a while: what fails and works in turns, such as writes beside reads,
// is one outage.
func (o *outageLog) worked() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.since.IsZero() || time.Since(o.last) < outageSettle {
		return
	}
	o.log.Info("smallage: "+o.what+": Redis answers again", "after", o.last.Sub(o.since).Round(time.Millisecond), "failures", o.failures)
	o.since, o.failures = time.Time{}, 0
}
