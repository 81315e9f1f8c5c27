package crashtest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	smallage "github.com/smallage/smallage/runtime"
)

// What a worker process writes down.
const (
	Started = "started" // a handler was called
	Effect  = "effect"  // the handler did what it is for, and is about to return nil
	Failed  = "failed"  // the handler is about to return an error
)

// Record is one line of a ledger: one of the above, or the kind of an event of the runtime.
type Record struct {
	Time     time.Time `json:"time"`
	PID      int       `json:"pid"`
	What     string    `json:"what"`
	Job      string    `json:"job"`
	Key      string    `json:"key,omitempty"`
	Attempt  int       `json:"attempt"`
	Delivery int       `json:"delivery"`
	Reason   string    `json:"reason,omitempty"`
}

// Ledger is the file of one worker process. A line is one write to a file, which the system keeps when the process is
// killed right after it.
type Ledger struct {
	mu   sync.Mutex
	file *os.File
}

// OpenLedger begins the ledger of this process.
func OpenLedger(dir string) (*Ledger, error) {
	file, err := os.OpenFile(ledgerPath(dir, os.Getpid()), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	return &Ledger{file: file}, nil
}

func ledgerPath(dir string, pid int) string { return filepath.Join(dir, strconv.Itoa(pid)+".ledger") }

// Write adds a line.
func (l *Ledger) Write(what string, job smallage.JobInfo, key string, reason smallage.Reason) {
	line, err := json.Marshal(Record{
		Time: time.Now(), PID: os.Getpid(), What: what, Job: job.ID.String(), Key: key,
		Attempt: job.Attempt, Delivery: job.Delivery, Reason: string(reason),
	})
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		_, err = l.file.Write(append(line, '\n'))
	}
	if err != nil {
		panic(fmt.Sprintf("crashtest: write the ledger: %v", err)) // without its ledger a test would prove nothing
	}
}

// Observe writes down what the runtime reports of jobs.
func (l *Ledger) Observe(e smallage.Event) {
	if e.Kind != smallage.EventStarted { // the handler's own line says it
		l.Write(string(e.Kind), e.Job, e.Key, e.Reason)
	}
}

// ReadLedgers returns the lines of all processes, each process's in order.
func ReadLedgers(dir string) ([]Record, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.ledger"))
	if err != nil {
		return nil, err
	}
	var all []Record
	for _, path := range paths {
		records, err := readLedger(path)
		if err != nil {
			return nil, err
		}
		all = append(all, records...)
	}
	return all, nil
}

func readLedger(path string) ([]Record, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // the process ended before it began one
	}
	if err != nil {
		return nil, err
	}
	if end := bytes.LastIndexByte(data, '\n'); end >= 0 {
		data = data[:end+1] // a last line without its end is being written
	} else {
		data = nil
	}
	var records []Record
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		var r Record
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("%s: %w in %q", path, err, lines.Text())
		}
		records = append(records, r)
	}
	return records, nil
}
