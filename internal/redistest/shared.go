package redistest

import (
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
)

var shared struct {
	once   sync.Once
	server *Server
	err    error
}

// Shared returns the one server that all tests of this binary share, for tests that only need a Namespace of their own.
// It must not be flushed, and refuses to be stopped, killed or paused. It runs until Main's Run returns, or the binary
// ends.
func Shared(t testing.TB) *Server {
	t.Helper()
	program := requireProgram(t)
	shared.once.Do(func() {
		// It writes no file, so it needs no folder that somebody would have to remove.
		shared.server, shared.err = start(program, os.TempDir(), nil)
	})
	if shared.err != nil {
		t.Fatalf("redistest: %v", shared.err)
	}
	mine := *shared.server // the process is common; clean-up and failures belong to this test
	mine.t, mine.shared = t, true
	return &mine
}

// Runner is what a TestMain runs.
type Runner interface{ Run() int }

// Main returns a runner for TestMain that ends the shared server after the tests, so that nothing of it is left when
// leaks are looked for:
//
//	func TestMain(m *testing.M) { goleak.VerifyTestMain(redistest.Main(m)) }
//	func TestMain(m *testing.M) { os.Exit(redistest.Main(m).Run()) }
func Main(m Runner) Runner { return mainRunner{m} }

type mainRunner struct{ tests Runner }

func (r mainRunner) Run() int {
	defer func() {
		if shared.server != nil {
			_ = shared.server.end(os.Kill)
		}
	}()
	return r.tests.Run()
}

// Namespace returns a valid namespace that no other call returns: the test's name, for whoever looks into the server,
// and a random part.
func Namespace(t testing.TB) string {
	t.Helper()
	const longest = 60
	name := strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '.' {
			return r
		}
		return '_'
	}, t.Name())
	return name[:min(len(name), longest)] + "." + uuid.NewString()[:13]
}
