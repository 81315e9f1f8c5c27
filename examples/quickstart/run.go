package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/smallage/smallage/examples/quickstart/tasks"
	smallage "github.com/smallage/smallage/runtime"
	"github.com/smallage/smallage/runtime/embedded"
)

// patience bounds the wait for any one job.
const patience = time.Minute

// show is one run of the example: the application's side of it.
type show struct {
	client *smallage.Client
	root   fs.FS
	index  *tasks.Index
	ledger *tasks.Ledger
	out    io.Writer
	promises
	rows []row
}

func run(ctx context.Context, set settings, stdout, stderr io.Writer) (promises, error) {
	paths, leftOut, err := textFiles(set.root, set.own)
	if err != nil {
		return nil, fmt.Errorf("-dir %s: %w", set.dir, err)
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("no text files in %s: name another folder with -dir", set.dir)
	}

	rdb, where, closeRedis, err := connect(ctx, set, stderr)
	if err != nil {
		return nil, err
	}
	defer closeRedis()
	// A namespace of its own keeps one run from meeting the jobs of another that was interrupted.
	namespace := "quickstart-" + uuid.NewString()[:8]
	client, err := smallage.NewClient(rdb, smallage.ClientConfig{Namespace: namespace})
	if err != nil {
		return nil, err
	}
	defer client.Close()

	s := &show{client: client, root: set.root, index: tasks.NewIndex(set.root), ledger: &tasks.Ledger{}, out: stdout}
	stopWorkers, err := s.startWorkers(rdb, namespace, set.workers, stderr)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(stdout, "%d files, %d workers, %s\n", len(paths), set.workers, where)
	if leftOut > 0 {
		fmt.Fprintf(stdout, "%d more files left out: larger than 1 MiB, not text, or not readable\n", leftOut)
	}
	err = s.parts(ctx, paths, set.own)
	if stopErr := stopWorkers(); err == nil {
		err = stopErr
	}
	if cleanErr := removeKeys(rdb, namespace); err == nil {
		err = cleanErr
	}
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(stdout)
	printSummary(stdout, s.rows, s.promises)
	return s.promises, nil
}

func (s *show) parts(ctx context.Context, paths []string, own bool) error {
	if err := s.reindex(ctx, paths); err != nil {
		return err
	}
	if err := s.search(own); err != nil {
		return err
	}
	if err := s.charge(ctx); err != nil {
		return err
	}
	return s.remind(ctx)
}

// connect returns a client of the server that was asked for, what to call it, and how to let go of it.
func connect(ctx context.Context, set settings, stderr io.Writer) (*redis.Client, string, func(), error) {
	if set.redis == nil {
		server, err := embedded.Start(embedded.Config{})
		if err != nil {
			return nil, "", nil, err
		}
		return server.Client(), "embedded server", server.Close, nil
	}
	rdb := redis.NewClient(set.redis)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := rdb.Ping(ctx).Err(); err != nil {
		_ = rdb.Close()
		return nil, "", nil, fmt.Errorf("no Redis at %s: %w; start one, or leave out -redis for the embedded server", set.redis.Addr, err)
	}
	return rdb, "Redis at " + set.redis.Addr, func() { _ = rdb.Close() }, nil
}

// startWorkers runs the workers, as many processes would in production. What it returns ends them and waits for that.
func (s *show) startWorkers(rdb redis.UniversalClient, namespace string, n int, stderr io.Writer) (func() error, error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, n)
	for i := range n {
		cfg := smallage.WorkerConfig{
			Namespace: namespace, Name: fmt.Sprintf("quickstart-%d", i+1), DrainTimeout: 5 * time.Second, Logger: logger(stderr),
		}
		w, err := smallage.NewWorker(rdb, cfg, tasks.Dispatch(s.index, s.ledger))
		if err != nil { // the same for each, so it is the first and none runs yet
			cancel()
			return nil, err
		}
		go func() { ended <- w.Run(ctx) }()
	}
	return func() error {
		cancel()
		var errs []error
		for range n {
			errs = append(errs, <-ended)
		}
		return errors.Join(errs...)
	}, nil
}

// logger writes what an operator must know, in short lines without the time.
func logger(stderr io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{
		Level: slog.LevelWarn,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
}

// removeKeys leaves a server that belongs to somebody as it was found. It has its own time, since it also follows ctrl-C.
func removeKeys(rdb *redis.Client, namespace string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for cursor := uint64(0); ; {
		keys, next, err := rdb.Scan(ctx, cursor, namespace+":*", 1000).Result()
		if err == nil && len(keys) > 0 {
			err = rdb.Unlink(ctx, keys...).Err()
		}
		if err != nil {
			return fmt.Errorf("remove the example's keys %s:*: %w", namespace, err)
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}
