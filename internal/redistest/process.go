package redistest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// process is one run of the server program.
type process struct {
	cmd   *exec.Cmd
	out   *output
	ended chan struct{} // closed once the process is gone and was waited for
}

// startLimit is generous: two cores may be shared by many tests under the race detector.
const startLimit = 30 * time.Second

var errPortTaken = errors.New("the port is taken")

// launch starts the program and returns once it accepts connections. errPortTaken says that another port may do.
func launch(program string, args []string) (*process, error) {
	p := &process{cmd: exec.Command(program, args...), out: newOutput(), ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.out
	p.cmd.WaitDelay = time.Second // a forked child that rewrites the AOF may hold the output open for longer
	p.cmd.SysProcAttr = dieWithParent()

	started := make(chan error, 1)
	go func() {
		// The parent whose death ends the process is this thread, so it has to stay for as long as the process does.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait()
		}
		close(p.ended)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}

	limit := time.NewTimer(startLimit)
	defer limit.Stop()
	select {
	case <-p.out.ready:
		return p, nil
	case <-p.ended:
		if strings.Contains(p.out.String(), "Address already in use") {
			return nil, fmt.Errorf("%w: %s", errPortTaken, p.out)
		}
		return nil, fmt.Errorf("%s ended at once (%s):\n%s", program, p.cmd.ProcessState, p.out)
	case <-limit.C:
		_ = p.end(os.Kill)
		return nil, fmt.Errorf("%s does not accept connections after %v:\n%s", program, startLimit, p.out)
	}
}

// end sends the signal and waits until the process is gone.
func (p *process) end(signal os.Signal) error {
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %v to process %d: %w", signal, p.cmd.Process.Pid, err)
	}
	limit := time.NewTimer(startLimit)
	defer limit.Stop()
	select {
	case <-p.ended:
		return nil
	case <-limit.C:
		return fmt.Errorf("process %d is still there %v after signal %v:\n%s", p.cmd.Process.Pid, startLimit, signal, p.out)
	}
}

func (p *process) running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}
