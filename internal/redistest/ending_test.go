//go:build unix

package redistest_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/smallage/smallage/internal/redistest"
)

// These tests run this binary again as a test run of its own that ends badly; scene says how.
const scene = "REDISTEST_SCENE"

func runScene(t *testing.T, name string, env ...string) (output string, failed bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestScene$", "-test.v")
	cmd.Env = append(append(os.Environ(), scene+"="+name), env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err != nil
}

func TestScene(t *testing.T) {
	name := os.Getenv(scene)
	if name == "" {
		return // an ordinary run: what it does is tested by those who set the scene
	}
	s := redistest.Start(t)
	fmt.Printf("pid=%d shared=%d\n", s.PID(), redistest.Shared(t).PID())
	switch name {
	case "panic":
		panic("on purpose")
	case "exit":
		os.Exit(3)
	case "sigkill":
		require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGKILL))
		select {}
	case "stop shared":
		redistest.Shared(t).Stop()
	case "failure":
		t.Error("on purpose")
	}
}

func TestServersEndWithTheBinaryHoweverItEnds(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends a process with its parent")
	}
	for _, name := range []string{"panic", "exit", "sigkill", "failure", "regular"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, failed := runScene(t, name)
			require.Equal(t, name != "regular", failed, out)
			pids := regexp.MustCompile(`pid=(\d+) shared=(\d+)`).FindStringSubmatch(out)
			require.NotNil(t, pids, out)
			for _, text := range pids[1:] {
				pid, err := strconv.Atoi(text)
				require.NoError(t, err)
				require.Eventually(t, func() bool { return gone(pid) }, 10*time.Second, 5*time.Millisecond, "server %d", pid)
			}
		})
	}
}

// gone reports whether a process has ended; one that nobody waited for yet counts as ended.
func gone(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	_, state, _ := bytes.Cut(stat, []byte(") "))
	return len(state) > 0 && (state[0] == 'Z' || state[0] == 'X')
}

func TestFailureShowsTheServersLog(t *testing.T) {
	t.Parallel()
	out, failed := runScene(t, "failure")
	require.True(t, failed)
	require.Contains(t, out, "Ready to accept connections")
}

func TestSharedServerIsNotStopped(t *testing.T) {
	t.Parallel()
	out, failed := runScene(t, "stop shared")
	require.True(t, failed)
	require.Contains(t, out, "Stop on the shared server would break its other tests: use Start")
}

func TestMissingProgramFailsOnCIAndSkipsElsewhere(t *testing.T) {
	t.Parallel()
	const advice = "apt-get install redis-server"
	nowhere := []string{"PATH=" + t.TempDir(), "SMALLAGE_REDIS_SERVER="}

	out, failed := runScene(t, "regular", append(nowhere, "CI=true")...)
	require.True(t, failed, out)
	require.Contains(t, out, "--- FAIL: TestScene")
	require.Contains(t, out, advice)

	out, failed = runScene(t, "regular", append(nowhere, "CI=")...)
	require.False(t, failed, out)
	require.Contains(t, out, "--- SKIP: TestScene")
	require.Contains(t, out, advice)

	out, failed = runScene(t, "regular", "SMALLAGE_REDIS_SERVER=no-such-server", "CI=true")
	require.True(t, failed, out)
	require.Contains(t, out, "SMALLAGE_REDIS_SERVER=no-such-server")
}

func TestProgramThatEndsAtOnceIsShown(t *testing.T) {
	t.Parallel()
	out, failed := runScene(t, "regular", "SMALLAGE_REDIS_SERVER=false", "CI=true")
	require.True(t, failed, out)
	require.Contains(t, out, "ended at once (exit status 1)")
}
