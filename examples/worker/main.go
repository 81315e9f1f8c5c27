// Command worker is a worker as it runs in production, and the program that gives it work.
//
//	go run ./examples/worker                       run jobs until a signal comes
//	go run ./examples/worker README.md go.mod      have files' checksums taken by the workers, and wait for them
//
// Both use the Redis at -redis, or the environment's REDIS_URL, or redis://127.0.0.1:6379.
//
// The first SIGTERM or SIGINT has the worker drain: it takes no more jobs, hands back those that it has not started, and
// lets the others come to their end for up to -drain. That costs no job an attempt, so it is what a deployment should
// send. The second signal stops the worker at once; what it was running goes to another worker when its lease is over.
//
// Exit status: 0 after draining, or where all checksums came; 1 for a stop at once and for failures; 2 for wrong usage.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/smallage/smallage/examples/worker/checksums"
	smallage "github.com/smallage/smallage/runtime"
)

func main() { os.Exit(command(os.Args[1:], os.Stdout, os.Stderr)) }

type settings struct {
	redis       *redis.Options
	concurrency int
	drain       time.Duration
	wait        time.Duration
	files       []string
}

func command(args []string, stdout, stderr io.Writer) int {
	set, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(stderr, "worker:", err)
		return 2
	}
	rdb := redis.NewClient(set.redis)
	defer rdb.Close()
	if len(set.files) > 0 {
		err = takeChecksums(rdb, set, stdout)
	} else {
		err = work(rdb, set, slog.New(slog.NewTextHandler(stderr, nil)))
	}
	if err != nil {
		fmt.Fprintln(stderr, "worker:", err)
		return 1
	}
	return 0
}

func parse(args []string, stderr io.Writer) (settings, error) {
	var set settings
	flags := flag.NewFlagSet("worker", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	url := flags.String("redis", cmp.Or(os.Getenv("REDIS_URL"), "redis://127.0.0.1:6379"), "the server's `URL`")
	flags.IntVar(&set.concurrency, "concurrency", 10, "how many jobs run at once")
	flags.DurationVar(&set.drain, "drain", 30*time.Second, "how long running jobs may go on after the first signal")
	flags.DurationVar(&set.wait, "wait", time.Minute, "how long to wait for each checksum")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(stderr, "usage: worker [flags]           runs jobs until a signal comes\n"+
				"       worker [flags] file...   has the files' checksums taken")
			flags.SetOutput(stderr)
			flags.PrintDefaults()
			return set, err
		}
		return set, fmt.Errorf("%w; -help shows the flags", err)
	}
	opt, err := redis.ParseURL(*url)
	if err != nil {
		return set, fmt.Errorf("-redis: %w; use redis://host:port or rediss://user:password@host:port/database", err)
	}
	set.redis, set.files = opt, flags.Args()
	return set, nil
}

// work runs a worker until the first signal, and lets it drain until the second.
func work(rdb redis.UniversalClient, set settings, log *slog.Logger) error {
	w, err := smallage.NewWorker(rdb, smallage.WorkerConfig{
		Concurrency: set.concurrency, DrainTimeout: set.drain, Logger: log,
	}, checksums.Dispatch())
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)

	ctx, drain := context.WithCancel(context.Background())
	defer drain()
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	log.Info("working", "redis", set.redis.Addr, "concurrency", set.concurrency)
	select {
	case err := <-ended:
		return err
	case s := <-signals:
		log.Info("draining; another signal stops at once", "signal", s.String(), "drain", set.drain)
	}
	drain()
	select {
	case err := <-ended:
		log.Info("drained")
		return err
	case s := <-signals:
		return fmt.Errorf("stopped at once by %s: running jobs go to another worker when their leases are over", s)
	}
}

// takeChecksums enqueues one job per file and prints the checksums in the files' order.
func takeChecksums(rdb redis.UniversalClient, set settings, stdout io.Writer) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	client, err := smallage.NewClient(rdb, smallage.ClientConfig{})
	if err != nil {
		return err
	}
	defer client.Close()

	ids := make([]smallage.JobID, len(set.files))
	for i, file := range set.files {
		path, err := filepath.Abs(file) // the worker may run in another folder
		if err != nil {
			return fmt.Errorf("path of %s: %w", file, err)
		}
		// A job that no worker has started when nobody waits any more is not worth running.
		ids[i], err = checksums.FileEnqueue(ctx, client, path,
			checksums.FileWith.ResultTTL(set.wait+time.Minute), checksums.FileWith.ExpiresIn(set.wait+time.Minute))
		if err != nil {
			return err
		}
	}
	var errs []error
	for i, id := range ids {
		sum, err := checksums.FileWait(ctx, client, id, set.wait)
		if errors.Is(err, smallage.ErrNoResult) {
			err = fmt.Errorf("no checksum of %s after %v: is a worker running? (%w)", set.files[i], set.wait, err)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		fmt.Fprintf(stdout, "%s  %s\n", sum, set.files[i])
	}
	return errors.Join(errs...)
}
