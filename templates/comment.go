package templates

import (
	"fmt"
	"strings"
	"time"
)

// enqueueComment is what a caller reads at the call: what the wrapper does, what the task's author wrote, and how the
// job will be treated.
func enqueueComment(t *Task) string {
	facts := strings.Join(treatment(t), ", ") + "."
	if len(t.Settings.Optional) > 0 {
		facts += fmt.Sprintf(" Jobs may lack %s.", strings.Join(t.Settings.Optional, ", "))
	}
	return docComment(fmt.Sprintf("%s enqueues a job of the task %s.", t.Names().Enqueue, t.Name), t.Doc, facts)
}

// The runtime's defaults, as its documentation gives them; a comment that said "default" would help nobody.
const (
	DefaultQueue    = "default"
	DefaultAttempts = 3
)

func treatment(t *Task) []string {
	s := t.Settings
	queue, attempts := s.Queue, s.Attempts
	if queue == "" {
		queue = DefaultQueue
	}
	if attempts == 0 {
		attempts = DefaultAttempts
	}
	facts := []string{"Queue " + queue, fmt.Sprintf("%d attempts", attempts)}
	if attempts == 1 {
		facts[1] = "1 attempt"
	}
	if s.Timeout != 0 {
		facts = append(facts, "timeout "+Span(s.Timeout))
	} else {
		facts = append(facts, "no timeout")
	}
	if s.Dedup != "" {
		facts = append(facts, fmt.Sprintf("deduplicated by %q", s.Dedup))
	}
	if s.ResultTTL != 0 {
		facts = append(facts, "result kept "+Span(s.ResultTTL))
	}
	if s.ExpiresIn != 0 {
		facts = append(facts, "expires in "+Span(s.ExpiresIn))
	}
	return facts
}

// Span writes a duration without the zero units that Duration.String has: 5m, not 5m0s.
func Span(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
