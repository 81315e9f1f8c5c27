// Package tasks holds the tasks that the measurements run.
package tasks

import (
	"context"

	"github.com/google/uuid"
)

//go:generate go tool smallagegen

// Sink is told of every job that ran.
type Sink func(docID uuid.UUID)

// Noop does nothing but count itself.
//
//smallage:task queue=bench name=bench.Noop inject=sink
func Noop(_ context.Context, sink Sink, docID uuid.UUID) error {
	sink(docID)
	return nil
}

// Timed is Noop with a timeout, which costs a context and a timer.
//
//smallage:task queue=bench name=bench.Timed inject=sink timeout=30s
func Timed(_ context.Context, sink Sink, docID uuid.UUID) error {
	sink(docID)
	return nil
}
