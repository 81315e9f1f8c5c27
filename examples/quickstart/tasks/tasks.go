// Package tasks holds the quickstart's tasks. What callers use, ReindexEnqueue and the like, is generated from the
// directives into smallage_gen.go.
package tasks

import (
	"context"
	"fmt"
	"strconv"

	"github.com/google/uuid"
)

//go:generate go run github.com/smallage/smallage/cmd/smallagegen

// Reindex reads one file and rebuilds its entry in the word index. Its value is the number of words, in decimal digits.
//
//smallage:task queue=search attempts=5 timeout=30s backoff=100ms,2s
//smallage:task inject=index
func Reindex(ctx context.Context, index *Index, path string) ([]byte, error) {
	words, err := index.Read(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("reindex %s: %w", path, err)
	}
	return strconv.AppendInt(nil, int64(words), 10), nil
}

// Charge collects one invoice, at most once a day: however many jobs name the invoice, one of them runs. Its value is
// the number of the receipt.
//
//smallage:task queue=billing dedup="charge:{invoiceID}"
//smallage:task inject=ledger
func Charge(ctx context.Context, ledger *Ledger, invoiceID uuid.UUID) ([]byte, error) {
	receipt, err := ledger.Book(ctx, invoiceID)
	if err != nil {
		return nil, fmt.Errorf("charge invoice %s: %w", invoiceID, err)
	}
	return []byte(receipt), nil
}

// Remind sends a reminder to somebody whose mailbox does not exist, so it fails every time.
//
//smallage:task queue=mail attempts=3 backoff=50ms,200ms
func Remind(_ context.Context, address string) error {
	return fmt.Errorf("no mailbox %s", address)
}
