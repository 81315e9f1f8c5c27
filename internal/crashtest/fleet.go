//go:build unix

package crashtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

var program struct {
	once sync.Once
	path string
	err  error
}

// buildProgram builds the worker program once for all tests of this binary, in a folder that RemoveProgram removes.
func buildProgram() (string, error) {
	program.once.Do(func() {
		dir, err := os.MkdirTemp("", "smallage-worker-")
		if err != nil {
			program.err = err
			return
		}
		program.path = filepath.Join(dir, "worker")
		args := []string{"build", "-tags", "smallagepoints", "-o", program.path}
		if raceEnabled {
			args = append(args, "-race")
		}
		out, err := exec.Command("go", append(args, "github.com/smallage/smallage/internal/crashtest/worker")...).CombinedOutput()
		if err != nil {
			program.err = fmt.Errorf("build the worker program: %w\n%s", err, out)
		}
	})
	return program.path, program.err
}

// RemoveProgram removes what the tests built; TestMain calls it.
func RemoveProgram() {
	if program.path != "" {
		_ = os.RemoveAll(filepath.Dir(program.path))
	}
}

// Worker is one worker process.
type Worker struct {
	PID    int
	t      testing.TB
	cmd    *exec.Cmd
	life   io.Closer // its standard input: it ends where this does
	log    *os.File
	ended  chan struct{}
	Frozen bool
}

// StartWorker runs a worker process and returns once it is up; it is killed when the test ends. env adds variables, NAME=value.
func StartWorker(t testing.TB, setup Setup, env ...string) *Worker {
	t.Helper()
	path, err := buildProgram()
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(setup)
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.CreateTemp(setup.Ledger, "worker-*.log")
	if err != nil {
		t.Fatal(err)
	}
	w := &Worker{t: t, cmd: exec.Command(path), log: log, ended: make(chan struct{})}
	w.cmd.Env = append(append(os.Environ(), setupVariable+"="+string(encoded)), env...)
	up := &awaited{text: []byte(ready), seen: make(chan struct{})}
	w.cmd.Stdout, w.cmd.Stderr = up, log
	// In a group of its own: where the parent dies, the system ends even those of an orphaned group that are frozen.
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if w.life, err = w.cmd.StdinPipe(); err == nil {
		err = w.cmd.Start()
	}
	if err != nil {
		t.Fatalf("start a worker: %v", err)
	}
	w.PID = w.cmd.Process.Pid
	go func() {
		_ = w.cmd.Wait()
		close(w.ended)
	}()
	t.Cleanup(func() {
		_ = w.cmd.Process.Kill()
		<-w.ended
		_ = log.Close()
		if t.Failed() {
			t.Logf("worker %d (%v) said:\n%s", w.PID, w.cmd.ProcessState, w.Log())
		}
	})
	select {
	case <-up.seen:
	case <-w.ended:
	case <-time.After(startLimit):
		t.Fatalf("worker %d is not up after %v:\n%s", w.PID, startLimit, w.Log())
	}
	return w
}

// startLimit is generous: many processes may start at once on few cores.
const startLimit = 60 * time.Second

// awaited tells when a text was written to it.
type awaited struct {
	text, got []byte
	seen      chan struct{}
	told      bool
}

// Write implements io.Writer.
func (a *awaited) Write(p []byte) (int, error) {
	if !a.told {
		a.got = append(a.got, p...)
		if bytes.Contains(a.got, a.text) {
			a.told = true
			close(a.seen)
		}
	}
	return len(p), nil
}

// Ended is closed once the process has ended.
func (w *Worker) Ended() <-chan struct{} { return w.ended }

// Log returns the end of what the worker logged.
func (w *Worker) Log() string {
	const most = 4 << 10
	data, err := os.ReadFile(w.log.Name())
	if err != nil {
		return err.Error()
	}
	return string(data[max(0, len(data)-most):])
}

// Kill ends the process by SIGKILL and waits for its end.
func (w *Worker) Kill() {
	w.t.Helper()
	w.signal(syscall.SIGKILL)
	w.AwaitEnd(10 * time.Second)
}

// Freeze stops the process by SIGSTOP; Thaw lets it go on.
func (w *Worker) Freeze() {
	w.t.Helper()
	w.signal(syscall.SIGSTOP)
	w.Frozen = true
}

// Thaw lets a frozen process go on.
func (w *Worker) Thaw() {
	w.t.Helper()
	w.signal(syscall.SIGCONT)
	w.Frozen = false
}

// IsStopped reports whether the process was stopped, by Freeze or by itself.
func (w *Worker) IsStopped() bool {
	out, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(w.PID)).Output()
	return err == nil && strings.HasPrefix(strings.TrimSpace(string(out)), "T")
}

// Terminate asks the process to end, without waiting for it.
func (w *Worker) Terminate() {
	w.t.Helper()
	w.signal(syscall.SIGTERM)
}

// Stop ends the process in good order and requires that it succeeds.
func (w *Worker) Stop() {
	w.t.Helper()
	w.Terminate()
	if state := w.AwaitEnd(40 * time.Second); !state.Success() {
		w.t.Fatalf("worker %d ended with %v after SIGTERM:\n%s", w.PID, state, w.Log())
	}
}

// Alive reports whether the process has not ended.
func (w *Worker) Alive() bool {
	select {
	case <-w.ended:
		return false
	default:
		return true
	}
}

// AwaitEnd waits for the end of the process and returns how it ended.
func (w *Worker) AwaitEnd(limit time.Duration) *os.ProcessState {
	w.t.Helper()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-w.ended:
		return w.cmd.ProcessState
	case <-timer.C:
		w.t.Fatalf("worker %d has not ended within %v:\n%s", w.PID, limit, w.Log())
		return nil
	}
}

// Killed reports whether an ended process was ended by SIGKILL.
func Killed(state *os.ProcessState) bool {
	status, ok := state.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

func (w *Worker) signal(s syscall.Signal) {
	w.t.Helper()
	if err := w.cmd.Process.Signal(s); err != nil && w.Alive() {
		w.t.Fatalf("signal %v to worker %d: %v", s, w.PID, err)
	}
}
