package smallage

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// Errors to test for with errors.Is. Every error of this package names what was asked, what was found and what to do.
var (
	// ErrInvalid is matched by every error about a value that the caller gave: a configuration, an option, a name.
	ErrInvalid = errors.New("smallage: invalid")

	// ErrTooLarge is matched where arguments exceed ClientConfig.MaxArgsBytes. Nothing was enqueued.
	ErrTooLarge = errors.New("smallage: too large")

	// ErrUnconfirmed is returned by Enqueue where the job was sent but no reply came: it may or may not be in the queue.
	// The job id is returned beside it. Sending again is safe only for a job that carried the option ID from its first
	// send on; otherwise it may then run twice.
	ErrUnconfirmed = errors.New("smallage: enqueue unconfirmed")

	// ErrNoResult is returned by Result and Wait where there is no outcome: none yet, none any more, or the timeout
	// passed.
	ErrNoResult = errors.New("smallage: no result")

	// ErrNoResultRequested is returned by Result and Wait for a job that this client enqueued without ResultTTL, so that
	// there will never be an outcome. It also matches ErrNoResult.
	ErrNoResultRequested = fmt.Errorf("%w: the job was enqueued without ResultTTL", ErrNoResult)

	// ErrWrongTask is returned by the generated look-ups where the id belongs to a job of another task.
	ErrWrongTask = errors.New("smallage: job of another task")

	// ErrValueLost is returned by the generated look-ups where a job is known to have succeeded, but the worker died
	// before it stored the value that the handler had returned.
	ErrValueLost = errors.New("smallage: the job succeeded but its value was lost with its worker")

	// ErrLeaseLost is the cause of a handler's cancelled context where the worker could not keep the job's lease, so
	// that another worker may be running it (context.Cause tells).
	ErrLeaseLost = errors.New("smallage: lease lost")

	// ErrShutdown is the cause of a handler's cancelled context where the worker is stopping and DrainTimeout has
	// passed. An error that the handler then returns hands the job back and costs no attempt.
	ErrShutdown = errors.New("smallage: worker is shutting down")

	// ErrTimeout is the cause of a handler's cancelled context where the task's timeout has passed.
	ErrTimeout = errors.New("smallage: task timeout")
)

func invalidf(format string, args ...any) error {
	return fmt.Errorf("%w %w", ErrInvalid, fmt.Errorf(format, args...))
}

// shorten cuts text that is shown in a message, so that a megabyte given as a name does not become a megabyte of log.
func shorten(s string) string {
	const limit = 100
	if len(s) <= limit {
		return s
	}
	end := limit
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + fmt.Sprintf("… (%d bytes)", len(s))
}
