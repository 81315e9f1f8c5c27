package redistest

import (
	"errors"
	"os"
	"strconv"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Server is one real server. Its methods are for the goroutine of the test that it was started for.
type Server struct {
	t      testing.TB
	port   int
	shared bool
	frozen bool
	args   []string
	*process
	program string
}

// Option changes how Start runs the server.
type Option func(*settings)

type settings struct {
	args []string
}

// AOF has the server write every change to its append-only file before it answers, so that a restart of any kind loses
// nothing that was confirmed.
func AOF() Option { return Args("--appendonly", "yes", "--appendfsync", "always") }

// Args adds arguments for the server program, such as "--maxmemory", "100mb". Later ones win over earlier ones.
func Args(args ...string) Option {
	return func(s *settings) { s.args = append(s.args, args...) }
}

// Start runs a server with a folder of its own until the test ends. It keeps nothing on disk unless AOF is given.
func Start(t testing.TB, opts ...Option) *Server {
	t.Helper()
	program := requireProgram(t)
	s, err := start(program, t.TempDir(), opts)
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	s.t = t
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("server on %s:\n%s", s.Addr(), s.out)
		}
		// Nothing of its data is wanted any more, and SIGKILL also ends a frozen server.
		if err := s.end(os.Kill); err != nil {
			t.Errorf("redistest: %v", err)
		}
	})
	return s
}

func start(program, dir string, opts []Option) (*Server, error) {
	var set settings
	for _, opt := range opts {
		opt(&set)
	}
	for tries := 1; ; tries++ {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		args := append([]string{
			"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", dir, "--daemonize", "no",
			"--save", "", "--appendonly", "no", "--logfile", "", "--loglevel", "notice",
		}, set.args...)
		p, err := launch(program, args)
		if errors.Is(err, errPortTaken) && tries < 10 {
			continue
		}
		if err != nil {
			return nil, err
		}
		return &Server{port: port, args: args, process: p, program: program}, nil
	}
}

// Addr returns host and port, the same for as long as the test runs.
func (s *Server) Addr() string { return loopback(s.port) }

// PID returns the id of the server's current process.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Log returns the end of what the current process printed.
func (s *Server) Log() string { return s.out.String() }

// Client returns a new client with go-redis's default settings; it is closed when the test ends.
func (s *Server) Client() *redis.Client { return s.ClientWith(redis.Options{}) }

// ClientWith returns a new client with these settings, whose address is replaced by the server's; it is closed when the
// test ends.
func (s *Server) ClientWith(opt redis.Options) *redis.Client {
	opt.Network, opt.Addr = "tcp", s.Addr()
	rdb := redis.NewClient(&opt)
	s.t.Cleanup(func() { _ = rdb.Close() }) // the test may have closed it
	return rdb
}

// Stop ends the server in good order (SIGTERM) and waits for its end. StartAgain brings it back.
func (s *Server) Stop() {
	s.t.Helper()
	s.mayEnd("Stop")
	if s.frozen {
		s.Resume() // a frozen process does not hear SIGTERM
	}
	s.check(s.end(syscall.SIGTERM))
}

// Kill ends the server as a crash does (SIGKILL) and waits for its end. StartAgain brings it back.
func (s *Server) Kill() {
	s.t.Helper()
	s.mayEnd("Kill")
	s.frozen = false
	s.check(s.end(os.Kill))
}

// StartAgain runs a server that was ended on the same port with the same folder, and returns once it accepts
// connections: with AOF it then holds everything that it confirmed before, else nothing.
func (s *Server) StartAgain() {
	s.t.Helper()
	if s.running() {
		s.t.Fatalf("redistest: StartAgain: the server on %s is still running", s.Addr())
	}
	p, err := launch(s.program, s.args)
	s.check(err)
	s.process = p
}

// Restart is Stop and StartAgain.
func (s *Server) Restart() {
	s.t.Helper()
	s.Stop()
	s.StartAgain()
}

// Crash is Kill and StartAgain.
func (s *Server) Crash() {
	s.t.Helper()
	s.Kill()
	s.StartAgain()
}

// Pause freezes the server (SIGSTOP): connections stay open, nothing is answered.
func (s *Server) Pause() {
	s.t.Helper()
	s.mayEnd("Pause")
	s.check(freeze(s.cmd.Process))
	s.frozen = true
}

// Resume thaws the server (SIGCONT).
func (s *Server) Resume() {
	s.t.Helper()
	s.check(thaw(s.cmd.Process))
	s.frozen = false
}

func (s *Server) mayEnd(method string) {
	s.t.Helper()
	if s.shared {
		s.t.Fatalf("redistest: %s on the shared server would break its other tests: use Start", method)
	}
}

func (s *Server) check(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("redistest: %v", err)
	}
}
