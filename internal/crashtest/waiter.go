package crashtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	smallage "github.com/smallage/smallage/runtime"
)

// Wait is one wait of a waiter process that got its outcome.
type Wait struct {
	Status smallage.Status
	Got    time.Time
}

func waitsFile(folder string, pid int) string {
	return filepath.Join(folder, "waits-"+strconv.Itoa(pid))
}

// waitForOutcome is what a waiter process does.
func waitForOutcome(rdb *redis.Client, setup Setup) error {
	client, err := smallage.NewClient(rdb, smallage.ClientConfig{Namespace: setup.Namespace, MaxWaitConns: setup.MaxWaitConns})
	if err != nil {
		return err
	}
	id, err := smallage.ParseJobID(setup.WaitID)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(waitsFile(setup.Ledger, os.Getpid()), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	ended := make(chan error)
	for range setup.Waits {
		go func() {
			res, err := client.Wait(context.Background(), id, time.Minute)
			if err == nil {
				_, err = fmt.Fprintf(file, "%s %d\n", res.Status, time.Now().UnixMilli())
			}
			ended <- err
		}()
	}
	for range setup.Waits {
		err = errors.Join(err, <-ended)
	}
	return errors.Join(err, client.Close(), file.Close())
}

// ReadWaits returns the waits of a waiter process that have got their outcome.
func ReadWaits(setup Setup, pid int) ([]Wait, error) {
	data, err := os.ReadFile(waitsFile(setup.Ledger, pid))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var waits []Wait
	for line := range strings.Lines(string(data)) {
		var status string
		var ms int64
		if _, err := fmt.Sscanf(line, "%s %d\n", &status, &ms); err != nil {
			return nil, fmt.Errorf("line %q of the waits of process %d: %w", line, pid, err)
		}
		waits = append(waits, Wait{smallage.Status(status), time.UnixMilli(ms)})
	}
	return waits, nil
}
