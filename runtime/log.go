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
	failures int
}

const outageEvery = 30 * time.Second

// failed counts a failure.
func (o *outageLog) failed(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	o.failures++
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

// worked ends an outage.
func (o *outageLog) worked() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.since.IsZero() {
		return
	}
	o.log.Info("smallage: "+o.what+": Redis answers again", "after", time.Since(o.since).Round(time.Millisecond), "failures", o.failures)
	o.since, o.failures = time.Time{}, 0
}
