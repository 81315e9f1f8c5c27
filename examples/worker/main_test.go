//go:build unix

package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/smallage/smallage/internal/redistest"
)

// The tests run this binary again as the command itself, since signals and exit codes are what they are about.
const asCommand = "WORKER_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	os.Exit(redistest.Main(m).Run())
}

// buffer may be read while the process writes.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

type process struct {
	cmd       *exec.Cmd
	out, errs buffer
	code      chan int
}

// start runs the command in a database of its own, so that tests do not take each other's jobs.
func start(t *testing.T, url string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(os.Args[0], append([]string{"-redis", url}, args...)...), code: make(chan int, 1)}
	p.cmd.Env = append(os.Environ(), asCommand+"=1")
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.errs
	require.NoError(t, p.cmd.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var exit *exec.ExitError
		switch err := p.cmd.Wait(); {
		case err == nil:
			p.code <- 0
		case errors.As(err, &exit):
			p.code <- exit.ExitCode()
		default:
			p.code <- -1
		}
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may have ended
		<-ended
	})
	return p
}

func (p *process) exit(t *testing.T) int {
	t.Helper()
	select {
	case code := <-p.code:
		return code
	case <-time.After(30 * time.Second):
		require.Fail(t, "still running", "%s", &p.errs)
		return -1
	}
}

func (p *process) signal(t *testing.T) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
}

func (p *process) await(t *testing.T, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(p.errs.String(), text) }, 20*time.Second, 5*time.Millisecond,
		"%q never came", text)
}

// pipe is a file whose reader waits for the test to write.
func pipe(t *testing.T) (path string, write func() *os.File) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	return path, func() *os.File {
		f, err := os.OpenFile(path, os.O_WRONLY, 0) // returns once the handler reads
		require.NoError(t, err)
		return f
	}
}

func sum(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }

func TestChecksumsAreTakenByAWorker(t *testing.T) {
	t.Parallel()
	url := "redis://" + redistest.Start(t).Addr()
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	require.NoError(t, os.WriteFile(one, []byte("celery"), 0o600))
	require.NoError(t, os.WriteFile(two, nil, 0o600))

	asked := start(t, url, one, two)
	worker := start(t, url)
	require.Equal(t, 0, asked.exit(t), "%s", &asked.errs)
	require.Equal(t, sum("celery")+"  "+one+"\n"+sum("")+"  "+two+"\n", asked.out.String())

	missing := start(t, url, filepath.Join(dir, "three"), one)
	require.Equal(t, 1, missing.exit(t))
	require.Contains(t, missing.errs.String(), "three: no such file or directory")
	require.Equal(t, sum("celery")+"  "+one+"\n", missing.out.String())

	worker.signal(t)
	require.Equal(t, 0, worker.exit(t), "%s", &worker.errs)
	require.Contains(t, worker.errs.String(), "msg=drained")
}

func TestTheFirstSignalLetsARunningJobEnd(t *testing.T) {
	t.Parallel()
	url := "redis://" + redistest.Start(t).Addr()
	path, write := pipe(t)
	worker, asked := start(t, url), start(t, url, path)
	f := write()
	_, err := f.WriteString("cel")
	require.NoError(t, err)
	worker.signal(t)
	worker.await(t, "draining")
	_, err = f.WriteString("ery")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.Equal(t, 0, worker.exit(t), "%s", &worker.errs)
	require.Equal(t, 0, asked.exit(t), "%s", &asked.errs)
	require.Equal(t, sum("celery")+"  "+path+"\n", asked.out.String())
}

func TestTheDrainIsBoundedAndCostsNoAttempt(t *testing.T) {
	t.Parallel()
	url := "redis://" + redistest.Start(t).Addr()
	path, write := pipe(t)
	worker, asked := start(t, url, "-drain", "50ms"), start(t, url, path)
	first := write()
	worker.signal(t)
	require.Equal(t, 0, worker.exit(t), "%s", &worker.errs)
	require.NoError(t, first.Close())

	// The job goes on with the next worker at once, before any lease could have run out.
	start(t, url)
	begin := time.Now()
	second := write()
	_, err := second.WriteString("celery")
	require.NoError(t, err)
	require.NoError(t, second.Close())
	require.Equal(t, 0, asked.exit(t), "%s", &asked.errs)
	require.Equal(t, sum("celery")+"  "+path+"\n", asked.out.String())
	require.Less(t, time.Since(begin), 20*time.Second)
}

func TestTheSecondSignalStopsAtOnce(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	url := "redis://" + server.Addr()
	path, write := pipe(t)
	worker, _ := start(t, url), start(t, url, path)
	f := write()
	defer func() { require.NoError(t, f.Close()) }()
	worker.signal(t)
	worker.await(t, "draining")
	worker.signal(t)
	require.Equal(t, 1, worker.exit(t))
	require.Contains(t, worker.errs.String(), "stopped at once by terminated")
	pending, err := server.Client().XPending(t.Context(), "smallage:{q:files}:stream", "workers").Result()
	require.NoError(t, err)
	require.EqualValues(t, 1, pending.Count, "its job is there for another worker")
}

func TestNobodyWorks(t *testing.T) {
	t.Parallel()
	asked := start(t, "redis://"+redistest.Start(t).Addr(), "-wait", "50ms", "main.go")
	require.Equal(t, 1, asked.exit(t))
	require.Contains(t, asked.errs.String(), "no checksum of main.go after 50ms: is a worker running?")
}

func TestBadUsageIsExplained(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		url  string
		args []string
		code int
		want string
	}{
		{"http://127.0.0.1", nil, 2, "use redis://host:port"},
		{"redis://127.0.0.1:1", []string{"-concurrency", "-1"}, 1, "Concurrency"},
		{"redis://127.0.0.1:1", []string{"-drain", "soon"}, 2, "-help shows the flags"},
		{"redis://127.0.0.1:1", []string{"main.go"}, 1, "connection refused"},
		{"redis://127.0.0.1:1", []string{"-help"}, 0, "runs jobs until a signal comes"},
	} {
		p := start(t, c.url, c.args...)
		require.Equal(t, c.code, p.exit(t), "%s", &p.errs)
		require.Contains(t, p.errs.String(), c.want)
	}
}
