package smallage

import (
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits of what a job carries about its attempts, in bytes.
const (
	historyLength    = 10
	historyErrorSize = 1024
	historyStackSize = 4096
	errorSize        = 16 << 10 // of an outcome's error text
)

// Attempt is one ended run of a handler, as kept in the job's history.
type Attempt struct {
	Time   time.Time `json:"time"`   // of its end, by the worker's clock
	Worker string    `json:"worker"` // the consumer's name
	Error  string    `json:"error"`  // cut to 1024 bytes with a mark
	Stack  string    `json:"stack,omitempty"`
}

// appendAttempt adds to a history as stored. A history that cannot be read is begun anew rather than failing the job.
func appendAttempt(history string, a Attempt) string {
	var attempts []Attempt
	if history != "" {
		_ = json.Unmarshal([]byte(history), &attempts)
	}
	a.Error, a.Stack = cut(a.Error, historyErrorSize), cut(a.Stack, historyStackSize)
	attempts = append(attempts, a)
	if len(attempts) > historyLength {
		attempts = attempts[len(attempts)-historyLength:]
	}
	encoded, err := json.Marshal(attempts)
	if err != nil {
		return ""
	}
	return string(encoded)
}

// cut shortens text to a size in bytes, with a mark where something is missing, and makes it valid UTF-8.
func cut(s string, size int) string {
	const mark = "… (cut)"
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= size {
		return s
	}
	end := size - len(mark)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + mark
}
