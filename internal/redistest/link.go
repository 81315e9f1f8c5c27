package redistest

import (
	"bytes"
	"net"
	"sync"
	"time"
)

// link is one connection through a proxy.
type link struct {
	proxy          *Proxy
	client, server net.Conn
	ended          chan struct{}
	once           sync.Once
	doomed         bool   // its next reply is lost; guarded by proxy.mu
	tail           []byte // the end of the requests so far, where a text that is looked for may have begun
}

// cut breaks both sides at once. It does not take the proxy's lock.
func (l *link) cut() {
	l.once.Do(func() {
		close(l.ended)
		abort(l.client)
		abort(l.server)
	})
}

// abort closes a connection with a reset, as a crash does, instead of the farewell of a server that ends in good order.
func abort(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

func (l *link) leave() {
	l.cut()
	l.proxy.mu.Lock()
	defer l.proxy.mu.Unlock()
	delete(l.proxy.links, l)
	l.proxy.changed.Broadcast() // the other direction may be held by a stall
}

// requests carries what the client sends.
func (l *link) requests() {
	defer l.leave()
	buf := make([]byte, 64<<10)
	for {
		n, err := l.client.Read(buf)
		if n > 0 {
			if !l.passRequest(buf[:n]) {
				return
			}
			if _, err := l.server.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// passRequest holds the data while traffic is stalled, and looks for the text whose replies are to be lost. It reports
// whether the connection is still there.
func (l *link) passRequest(data []byte) bool {
	p := l.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	if text := p.swallowTo; text == nil {
		l.tail = l.tail[:0]
	} else if !l.doomed {
		l.tail = append(l.tail, bytes.ToLower(data)...)
		l.doomed = bytes.Contains(l.tail, text)
		if keep := len(text) - 1; len(l.tail) > keep {
			l.tail = append(l.tail[:0], l.tail[len(l.tail)-keep:]...)
		}
	}
	return l.awaitFlow()
}

// replies carries what the server answers.
func (l *link) replies() {
	defer l.leave()
	buf := make([]byte, 64<<10)
	for {
		n, err := l.server.Read(buf)
		if n > 0 {
			pass, keep := l.passReply(n)
			if pass > 0 {
				if _, err := l.client.Write(buf[:pass]); err != nil {
					return
				}
			}
			if !keep {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// passReply says how much of n bytes goes on to the client, and whether the connection stays.
func (l *link) passReply(n int) (pass int, keep bool) {
	p := l.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	if delay := p.delay; delay > 0 {
		p.mu.Unlock()
		wait := time.NewTimer(delay)
		select {
		case <-wait.C:
		case <-l.ended:
			wait.Stop()
		}
		p.mu.Lock()
	}
	switch {
	case !l.awaitFlow(), p.swallow, l.doomed:
		return 0, false
	case p.cutAfter < 0:
		return n, true
	case n < p.cutAfter:
		p.cutAfter -= n
		return n, true
	}
	pass, p.cutAfter = p.cutAfter, -1
	return pass, false
}

// awaitFlow waits while traffic is stalled, and reports whether the connection is still there. The caller holds the
// proxy's lock.
func (l *link) awaitFlow() bool {
	for {
		select {
		case <-l.ended:
			return false
		default:
		}
		if l.proxy.closed {
			return false
		}
		if !l.proxy.stalled {
			return true
		}
		l.proxy.changed.Wait()
	}
}
