package crashtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	smallage "github.com/smallage/smallage/runtime"
)

// Setup is what a worker process is told.
type Setup struct {
	Addr          string
	Namespace     string
	Ledger        string // folder of the ledgers
	Workers       int    // in the process, 0: 1
	Concurrency   int    // of each
	Lease         time.Duration
	MaxDeliveries int
	DrainTimeout  time.Duration

	// EnqueueID has the process enqueue one Plain job with this id instead of working.
	EnqueueID string

	// ReplayID has the process replay this dead job instead of working.
	ReplayID string

	// WaitID has the process wait for the outcome of this job, Waits times at once, instead of working; each wait that
	// got it adds a line to the process's waits (ReadWaits). MaxWaitConns is the client's.
	WaitID       string
	Waits        int
	MaxWaitConns int
}

// setupVariable holds the Setup as JSON.
const setupVariable = "SMALLAGE_CRASHTEST"

// ready is what the program prints once it hears signals and has its ledger.
const ready = "ready"

// RunWorker is the worker program. SIGTERM drains it, a second one ends it at once. It ends by itself where the process
// that holds the other end of its standard input is gone, so that none outlives its test.
func RunWorker() error {
	var setup Setup
	if err := json.Unmarshal([]byte(os.Getenv(setupVariable)), &setup); err != nil {
		return fmt.Errorf("%s: %w", setupVariable, err)
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(3)
	}()
	ledger, err := OpenLedger(setup.Ledger)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // the next signal then ends the process
	fmt.Println(ready)
	rdb := redis.NewClient(&redis.Options{Addr: setup.Addr})
	defer func() { _ = rdb.Close() }()
	if setup.WaitID != "" {
		return waitForOutcome(rdb, setup)
	}
	if setup.EnqueueID != "" || setup.ReplayID != "" {
		return callOnce(rdb, setup)
	}
	ended := make(chan error)
	for range max(1, setup.Workers) {
		w, err := smallage.NewWorker(rdb, smallage.WorkerConfig{
			Name: consumerName(os.Getpid()), Namespace: setup.Namespace, Concurrency: setup.Concurrency, Lease: setup.Lease, MaxDeliveries: setup.MaxDeliveries,
			DrainTimeout: setup.DrainTimeout, Observer: ledger,
			Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		}, Table(ledger))
		if err != nil {
			return err
		}
		go func() { ended <- w.Run(ctx) }()
	}
	for range max(1, setup.Workers) {
		err = errors.Join(err, <-ended)
	}
	return err
}

// callOnce makes the one call that the process was started for.
func callOnce(rdb *redis.Client, setup Setup) error {
	ctx := context.Background()
	client, err := smallage.NewClient(rdb, smallage.ClientConfig{Namespace: setup.Namespace})
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	id, err := smallage.ParseJobID(setup.EnqueueID + setup.ReplayID)
	if err != nil {
		return err
	}
	if setup.ReplayID != "" {
		return client.Dead().Replay(ctx, id)
	}
	_, err = Plain.Enqueue(ctx, client, Args{}, []smallage.Option[Args]{With.ID(id)})
	return err
}

// consumerName begins the names of a process's consumers.
func consumerName(pid int) string { return "p" + strconv.Itoa(pid) }
