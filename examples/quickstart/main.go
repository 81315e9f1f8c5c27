// Command quickstart shows Smallage at work on real input, end to end: it has workers build a word index of a folder's
// files, one job per file, and answers searches from it; it charges invoices twice each, of which one charge runs; and
// it waits for a job that fails until its attempts are spent.
//
//	go run ./examples/quickstart                  this repository's Markdown and Go files, on an embedded server
//	go run ./examples/quickstart -dir ~/notes     the text files of another folder
//	go run ./examples/quickstart -redis redis://127.0.0.1:6379 -workers 4
//
// It exits with 0 where everything was as promised, with 1 where it was not or could not be tried, with 2 for a bad
// command line, and with 130 after ctrl-C.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"syscall"

	"github.com/redis/go-redis/v9"
)

const (
	exitOK          = 0
	exitBroken      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal the next one ends the process at once, should ending cleanly take too long.
	context.AfterFunc(ctx, stop)
	redis.SetLogger(noLog{}) // what it says of lost connections, workers and the error below say too
	os.Exit(command(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

type noLog struct{}

func (noLog) Printf(context.Context, string, ...any) {}

// settings is the command line, checked.
type settings struct {
	redis   *redis.Options // nil: the embedded server
	dir     string         // as given, for messages
	root    fs.FS
	own     bool // the default folder: this repository's own files
	workers int
}

func command(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	set, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	if err != nil {
		fmt.Fprintln(stderr, "quickstart:", err)
		return exitUsage
	}
	promises, err := run(ctx, set, stdout, stderr)
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "quickstart: interrupted")
		return exitInterrupted
	case err != nil:
		fmt.Fprintln(stderr, "quickstart:", err)
		return exitBroken
	case !promises.kept():
		return exitBroken
	}
	return exitOK
}

func parse(args []string, stderr io.Writer) (settings, error) {
	flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	url := flags.String("redis", "", "run on this server instead of the embedded one: a `URL` such as redis://127.0.0.1:6379")
	dir := flags.String("dir", "", "index the text files of this `folder` instead of this repository's Markdown and Go files")
	workers := flags.Int("workers", 2, "run this many workers, each with its own goroutines")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(stderr, "usage: quickstart [-redis URL] [-dir folder] [-workers number]")
			flags.SetOutput(stderr)
			flags.PrintDefaults()
			return settings{}, err
		}
		return settings{}, fmt.Errorf("%w; -help shows the flags", err)
	}
	if flags.NArg() > 0 {
		return settings{}, fmt.Errorf("unexpected argument %q; -help shows the flags", flags.Arg(0))
	}
	set := settings{dir: *dir, workers: *workers}
	if set.dir == "" {
		set.dir, set.own = ".", true
	}
	if info, err := os.Stat(set.dir); err != nil {
		return settings{}, fmt.Errorf("-dir: %w; name a folder with text files", err)
	} else if !info.IsDir() {
		return settings{}, fmt.Errorf("-dir: %s is not a folder; name a folder with text files", set.dir)
	}
	set.root = os.DirFS(set.dir)
	if set.workers < 1 || set.workers > 100 {
		return settings{}, fmt.Errorf("-workers: %d; use 1 to 100", set.workers)
	}
	if *url != "" {
		opt, err := redis.ParseURL(*url)
		if err != nil {
			return settings{}, fmt.Errorf("-redis: %w; use redis://host:port or rediss://user:password@host:port/database", err)
		}
		set.redis = opt
	}
	return set, nil
}
