// Command smallagegen writes the typed wrappers and the dispatch table of a package's annotated functions.
//
//	smallagegen [flags] [packages]
//
// Packages are named as for the go command; the default is the one in the current folder. It is usually run as
// "go tool smallagegen ./..." from a //go:generate line.
//
// Exit status: 0 when all is done (or, with -check, would change nothing); 1 for diagnostics, failures, and differences
// that -check finds; 2 for wrong usage.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

func main() {
	// A run lives for a moment and holds little: collecting garbage would cost more than the memory. The limit is for
	// modules far larger than most.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(2000)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(1 << 30)
	}
	// A run that is interrupted before it writes leaves everything as it was; one that writes already, which takes a
	// moment, goes on. A second signal ends it wherever it is.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}
