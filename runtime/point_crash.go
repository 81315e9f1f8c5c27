//go:build smallagepoints && unix

package smallage

import (
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// pointVariable tells a process where to die: "name", or "name:n" for the n-th time that it gets there, or
// "name:n:pause" to be stopped there instead (SIGSTOP) until somebody sends SIGCONT.
const pointVariable = "SMALLAGE_POINT"

var fatalPoint = readPoint(os.Getenv(pointVariable))

type plannedPoint struct {
	name   string
	signal syscall.Signal
	left   atomic.Int64
}

func readPoint(plan string) *plannedPoint {
	parts := strings.Split(plan, ":")
	p := &plannedPoint{name: parts[0], signal: syscall.SIGKILL}
	p.left.Store(1)
	if len(parts) > 1 {
		n, err := strconv.ParseInt(parts[1], 10, 64)
		if err != nil || n < 1 {
			panic(pointVariable + "=" + plan + ": want name, name:n or name:n:pause")
		}
		p.left.Store(n)
	}
	if len(parts) > 2 && parts[2] == "pause" {
		p.signal = syscall.SIGSTOP
	}
	return p
}

func point(name string) {
	if name != fatalPoint.name || fatalPoint.left.Add(-1) != 0 {
		return
	}
	thawed := make(chan os.Signal, 1)
	signal.Notify(thawed, syscall.SIGCONT)
	defer signal.Stop(thawed)
	if err := syscall.Kill(os.Getpid(), fatalPoint.signal); err != nil {
		panic(err)
	}
	<-thawed // a signal to the process may take a while to stop this thread
}

var stepNames = [...]string{
	stepDone: "done", stepOutcome: "outcome", stepAck: "ack", stepExtend: "extend", stepRetry: "retry",
	stepVerdict: "verdict", stepUnclaim: "unclaim", stepFinish: "finish", stepOver: "over",
}

func stepPoint(when string, batch []*ending) {
	for _, e := range batch {
		if e.d != nil {
			point(when + "-" + stepNames[e.step])
		}
	}
}
