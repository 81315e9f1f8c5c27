package main

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/smallage/smallage/examples/quickstart/tasks"
	smallage "github.com/smallage/smallage/runtime"
)

const invoices = 5

// charge enqueues every invoice twice, as an impatient customer would, and looks into the ledger afterwards. The dedup
// key is made of the invoice's id by the directive, so nothing has to be said here.
func (s *show) charge(ctx context.Context) error {
	begin, done := time.Now(), newRow("Charge")
	twice := make(map[uuid.UUID][2]smallage.JobID)
	for range invoices {
		invoice, err := uuid.NewRandom()
		if err != nil {
			return err
		}
		var ids [2]smallage.JobID
		for i := range ids {
			if ids[i], err = tasks.ChargeEnqueue(ctx, s.client, invoice, tasks.ChargeWith.ResultTTL(5*time.Minute)); err != nil {
				return err
			}
		}
		twice[invoice] = ids
	}

	pairs := 0 // of one job that ran and one that was skipped and names the first
	for _, ids := range twice {
		var results [2]smallage.Result
		for i, id := range ids {
			var err error
			if results[i], err = s.client.Wait(ctx, id, patience); err != nil {
				return fmt.Errorf("wait for a charge: %w", err)
			}
			done.endings[results[i].Status]++
		}
		ran, skipped := results[0], results[1]
		if !ran.OK() { // which of the two is first is the workers' choice
			ran, skipped = skipped, ran
		}
		if ran.OK() && skipped.Status == smallage.StatusDuplicate && skipped.Owner == ran.ID {
			pairs++
		}
	}
	done.took = time.Since(begin)
	s.rows = append(s.rows, done)

	once := 0
	for _, times := range s.ledger.Booked() {
		if times == 1 {
			once++
		}
	}
	fmt.Fprintf(s.out, "\nledger: %d invoices enqueued twice each, %d charged once\n", invoices, once)
	s.check(once == invoices && len(s.ledger.Booked()) == invoices,
		"every invoice was charged once although it was enqueued twice: %d of %d", once, invoices)
	s.check(pairs == invoices, "every second job was skipped as the duplicate of the first: %d of %d", pairs, invoices)
	return nil
}
