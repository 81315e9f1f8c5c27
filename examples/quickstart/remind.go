package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/smallage/smallage/examples/quickstart/tasks"
	smallage "github.com/smallage/smallage/runtime"
)

// remind waits for a job that fails in every attempt. The waiter hears nothing of the first failures, since the job is
// not over then, and the last one's reason at the end.
func (s *show) remind(ctx context.Context) error {
	const address, attempts = "nobody@example.com", 3
	begin, done := time.Now(), newRow("Remind")
	id, err := tasks.RemindEnqueue(ctx, s.client, address, tasks.RemindWith.ResultTTL(5*time.Minute))
	if err != nil {
		return err
	}
	fmt.Fprintln(s.out, "\nenqueued a reminder to a mailbox that does not exist; the worker logs the end of it")
	res, err := s.client.Wait(ctx, id, patience)
	if err != nil {
		return fmt.Errorf("wait for the reminder: %w", err)
	}
	done.endings[res.Status]++
	done.took = time.Since(begin)
	s.rows = append(s.rows, done)

	fmt.Fprintf(s.out, "the reminder's waiter was told: %s after %d attempts: %s\n", res.Status, res.Attempts, res.Error)
	s.check(res.Status == smallage.StatusFailed && res.Attempts == attempts && strings.Contains(res.Error, "no mailbox "+address),
		"a job that cannot succeed ended as failed after %d attempts of %d, with its reason", res.Attempts, attempts)
	return nil
}
