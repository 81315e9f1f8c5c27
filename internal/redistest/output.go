package redistest

import (
	"bytes"
	"sync"
)

// output keeps the end of what a server prints, and tells when it says that it accepts connections.
type output struct {
	mu    sync.Mutex
	tail  []byte
	ready chan struct{}
	isUp  bool
}

const keptOutput = 32 << 10

var readyLine = []byte("Ready to accept connections")

func newOutput() *output { return &output{ready: make(chan struct{})} }

// Write implements io.Writer; it never fails.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	// Looked for in the joined text, since a line may come in two pieces.
	o.tail = append(o.tail, p...)
	if !o.isUp && bytes.Contains(o.tail, readyLine) {
		o.isUp = true
		close(o.ready)
	}
	if len(o.tail) > keptOutput {
		o.tail = append(o.tail[:0], o.tail[len(o.tail)-keptOutput:]...)
	}
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.tail)
}
