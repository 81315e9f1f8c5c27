package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/smallage/smallage/internal/redistest"
)

// The tests run this binary again as the command itself, so that exit codes and signals are the real ones.
const asCommand = "QUICKSTART_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	os.Exit(redistest.Main(m).Run())
}

type started struct {
	*exec.Cmd
	out, errs bytes.Buffer
}

func quickstart(args ...string) *started {
	s := &started{Cmd: exec.Command(os.Args[0], args...)}
	s.Env = append(os.Environ(), asCommand+"=1")
	s.Stdout, s.Stderr = &s.out, &s.errs
	return s
}

// exit returns the exit code of a command that ends by itself.
func (s *started) exit(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		require.NoError(t, err)
		return 0
	}
	return exit.ExitCode()
}

func notes(t *testing.T, n int) string {
	t.Helper()
	dir := t.TempDir()
	for i := range n {
		text := fmt.Sprintf("note %d about celery and celeriac\n", i)
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("note-%04d.txt", i)), []byte(text), 0o600))
	}
	return dir
}

func TestWithoutFlagsItIndexesThisRepository(t *testing.T) {
	t.Parallel()
	s := quickstart()
	s.Dir = filepath.Join("..", "..")
	require.Equal(t, 0, s.exit(t, s.Run()), "%s%s", &s.out, &s.errs)
	out := s.out.String()
	require.Contains(t, out, `search "dedup key"`)
	require.Regexp(t, `search "worker": \d+ files\n +\d+  \S+\.(go|md)\n`, out)
	require.Contains(t, out, "ledger: 5 invoices enqueued twice each, 5 charged once")
	require.Regexp(t, `told: failed after 3 attempts: .*no mailbox nobody@example\.com`, out)
	require.Regexp(t, `Reindex +\d+ +\d+ +0 +0 `, out)
	require.Regexp(t, `Charge +10 +5 +5 +0 `, out)
	require.Regexp(t, `Remind +1 +0 +0 +1 `, out)
	require.Equal(t, 6, strings.Count(out, "as promised: "))
	require.NotContains(t, out, "NOT AS PROMISED")
	require.NotContains(t, out, "\r", "no progress bar in a file")
	require.Equal(t, 1, strings.Count(s.errs.String(), "for development only"))
}

func TestOnARealServerItLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := quickstart("-redis", "redis://"+server.Addr(), "-dir", notes(t, 40), "-workers", "4")
	require.Equal(t, 0, s.exit(t, s.Run()), "%s%s", &s.out, &s.errs)
	require.Contains(t, s.out.String(), "40 files, 4 workers, Redis at "+server.Addr())
	require.Contains(t, s.out.String(), `search "celery": 40 files`)
	require.Regexp(t, `Reindex +40 +40 +0 +0 `, s.out.String())
	redistest.RequireNoKeys(t, server.Client(), "*")
}

func TestInterruptEndsItCleanly(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	proxy.Delay(5 * time.Millisecond) // so that it is still at work when the signal comes
	s := quickstart("-redis", "redis://"+proxy.Addr(), "-dir", notes(t, 2000))
	require.NoError(t, s.Start())
	rdb := server.Client()
	require.Eventually(t, func() bool {
		return len(redistest.Keys(t, rdb, "quickstart-*:result")) > 0 // a job has ended
	}, 20*time.Second, 5*time.Millisecond)
	require.NoError(t, s.Process.Signal(syscall.SIGINT))
	require.Equal(t, 130, s.exit(t, s.Wait()), "%s%s", &s.out, &s.errs)
	require.Contains(t, s.errs.String(), "quickstart: interrupted")
	redistest.RequireNoKeys(t, rdb, "*")
}

func TestBadCommandLinesAreExplained(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"unknown flag":     {[]string{"-speed"}, 2, "flag provided but not defined: -speed; -help shows the flags"},
		"argument":         {[]string{"notes"}, 2, `unexpected argument "notes"`},
		"no workers":       {[]string{"-workers", "0"}, 2, "-workers: 0; use 1 to 100"},
		"too many workers": {[]string{"-workers", "101"}, 2, "use 1 to 100"},
		"no number":        {[]string{"-workers", "many"}, 2, `invalid value "many" for flag -workers`},
		"no folder":        {[]string{"-dir", file + "-gone"}, 2, "no such file or directory; name a folder with text files"},
		"a file":           {[]string{"-dir", file}, 2, "is not a folder; name a folder with text files"},
		"no files":         {[]string{"-dir", t.TempDir()}, 1, "name another folder with -dir"},
		"another scheme":   {[]string{"-redis", "http://127.0.0.1"}, 2, "use redis://host:port"},
		"no Redis there": {
			[]string{"-redis", "redis://user:secret@127.0.0.1:1"},
			1,
			"no Redis at 127.0.0.1:1: dial tcp 127.0.0.1:1: connect: connection refused; start one, or leave out -redis",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := quickstart(c.args...)
			require.Equal(t, c.code, s.exit(t, s.Run()))
			require.Contains(t, s.errs.String(), "quickstart: ")
			require.Contains(t, s.errs.String(), c.want)
			require.NotContains(t, s.errs.String(), "secret")
			require.Equal(t, 1, strings.Count(s.errs.String(), "\n"), "%s", &s.errs)
		})
	}

	help := quickstart("-help")
	require.Equal(t, 0, help.exit(t, help.Run()))
	require.Contains(t, help.errs.String(), "-workers")
}

// unreadable lists its files but does not give one of them to those who read it whole.
type unreadable struct{ fstest.MapFS }

func (u unreadable) ReadFile(name string) ([]byte, error) {
	if name == "lost.md" {
		return nil, fs.ErrPermission
	}
	return u.MapFS.ReadFile(name)
}

func TestABrokenPromiseIsShownAndFails(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	set := settings{
		redis: &redis.Options{Addr: server.Addr()}, dir: "notes", workers: 1,
		root: unreadable{fstest.MapFS{"kept.md": {Data: []byte("celery")}, "lost.md": {Data: []byte("celery")}}},
	}
	var out, errs bytes.Buffer
	promises, err := run(t.Context(), set, &out, &errs)
	require.NoError(t, err)
	require.False(t, promises.kept())
	require.Contains(t, out.String(), "NOT AS PROMISED: every file was indexed: 1 of 2")
	require.Contains(t, out.String(), "reindex lost.md: permission denied")
	require.Regexp(t, `Reindex +2 +1 +0 +1 `, out.String())
}

func TestAnEndedContextEndsItAtOnce(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs bytes.Buffer
	code := command(ctx, []string{"-redis", "redis://" + redistest.Shared(t).Addr(), "-dir", notes(t, 1)}, &out, &errs)
	require.Equal(t, exitInterrupted, code, errs.String())
}

func TestNoPromiseIsNoneKept(t *testing.T) {
	t.Parallel()
	require.False(t, promises(nil).kept())
	require.True(t, promises{{"it holds", true}}.kept())
	require.False(t, promises{{"it holds", true}, {"it does not", false}}.kept())
}
