package tasks

import (
	"context"
	"fmt"
	"maps"
	"sync"

	"github.com/google/uuid"
)

// Ledger books charges. It does not look whether an invoice was booked before: keeping charges apart is the dedup key's
// work, and the ledger is what shows whether it was done. It is safe for concurrent use.
type Ledger struct {
	mu     sync.Mutex
	booked map[uuid.UUID]int
	total  int
}

// Book adds one charge and returns the number of its receipt.
func (l *Ledger) Book(ctx context.Context, invoiceID uuid.UUID) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.booked == nil {
		l.booked = map[uuid.UUID]int{}
	}
	l.booked[invoiceID]++
	l.total++
	return fmt.Sprintf("receipt-%d", l.total), nil
}

// Booked returns how often each invoice was charged.
func (l *Ledger) Booked() map[uuid.UUID]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.booked)
}
