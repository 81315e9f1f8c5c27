package smallage

import (
	"fmt"
	"time"
)

const (
	defaultAttempts     = 3
	defaultBackoff      = time.Second
	defaultBackoffMax   = 5 * time.Minute
	defaultMaxArgsBytes = 1 << 20
)

func tooLarge(job *Job, limit int) error {
	return fmt.Errorf("%w: arguments of task %s take %d bytes, ClientConfig.MaxArgsBytes allows %d; store the data elsewhere and pass its id",
		ErrTooLarge, job.Task, len(job.Args), limit)
}
