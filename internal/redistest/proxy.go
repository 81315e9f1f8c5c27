package redistest

import (
	"bytes"
	"errors"
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy stands between clients and a server and breaks their connections as told. Unlike a Server's, its methods may be
// called from any goroutine.
type Proxy struct {
	target string
	addr   string

	mu        sync.Mutex
	changed   *sync.Cond // stalled or closed changed
	listener  net.Listener
	links     map[*link]struct{}
	accepted  int
	closed    bool
	stalled   bool
	swallow   bool   // every reply
	swallowTo []byte // replies to requests that contain this, in lower case; nil: none
	cutAfter  int    // bytes toward clients until a connection is cut; -1: never
	delay     time.Duration
	running   sync.WaitGroup
}

// NewProxy returns a proxy to a server's address; it ends with the test.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	p := &Proxy{target: target, links: make(map[*link]struct{}), cutAfter: -1}
	p.changed = sync.NewCond(&p.mu)
	for tries := 1; ; tries++ {
		port, err := freePort()
		if err != nil {
			t.Fatalf("redistest: proxy: %v", err)
		}
		p.addr = loopback(port)
		if err = p.listen(); err == nil {
			break
		}
		if tries == 10 {
			t.Fatalf("redistest: proxy: %v", err)
		}
	}
	t.Cleanup(p.close)
	return p
}

// Addr returns the address for clients, the same for as long as the test runs.
func (p *Proxy) Addr() string { return p.addr }

// Conns returns how many connections are open.
func (p *Proxy) Conns() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.links)
}

// Accepted returns how many connections were made so far.
func (p *Proxy) Accepted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.accepted
}

// Cut breaks every open connection, on both sides. New ones are taken.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.cut()
	}
	p.changed.Broadcast() // to those that a stall holds
}

// Refuse says whether new connections are refused, as by a machine where nothing listens. Open ones stay; Cut breaks
// them. It panics where another process has meanwhile taken the port.
func (p *Proxy) Refuse(refuse bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case refuse && p.listener != nil:
		_ = p.listener.Close()
		p.listener = nil
	case !refuse && p.listener == nil && !p.closed:
		if err := p.listenLocked(); err != nil {
			panic("redistest: proxy: " + err.Error())
		}
	}
}

// DropReplies says whether replies are lost: a request reaches the server, the first byte of an answer breaks the
// connection instead of being passed on. That includes the greeting of a new connection, so that a client can send
// nothing more; DropRepliesTo is the choice where the client must be able to send again.
func (p *Proxy) DropReplies(drop bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.swallow = drop
}

// DropRepliesTo is DropReplies for those connections that send the text from now on, as part of a command or an
// argument, in any case of letters. The empty text ends it, for new requests.
func (p *Proxy) DropRepliesTo(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.swallowTo = nil
	if text != "" {
		p.swallowTo = bytes.ToLower([]byte(text))
	}
}

// CutAfterBytes lets n more bytes pass toward the clients, counted over all connections, and then breaks the one on
// which they ran out, once: in the middle of a reply, unless n is its end. A negative n ends it.
func (p *Proxy) CutAfterBytes(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cutAfter = max(n, -1)
}

// Stall says whether all traffic is held, in both directions, while connections stay open: a network that went away
// without a word. What was held passes on when it ends.
func (p *Proxy) Stall(stall bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stalled = stall
	p.changed.Broadcast()
}

// Delay holds everything on its way to the clients back for d; 0 ends it.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

func (p *Proxy) listen() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.listenLocked()
}

func (p *Proxy) listenLocked() error {
	l, err := net.Listen("tcp", p.addr)
	if err != nil {
		return err
	}
	p.listener = l
	p.running.Go(func() { p.accept(l) })
	return nil
}

func (p *Proxy) accept(l net.Listener) {
	for {
		client, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // a connection that was gone before it was taken
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			abort(client)
			continue
		}
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			abort(client)
			abort(server)
			return
		}
		link := &link{proxy: p, client: client, server: server, ended: make(chan struct{})}
		p.links[link] = struct{}{}
		p.accepted++
		p.running.Go(link.requests)
		p.running.Go(link.replies)
		p.mu.Unlock()
	}
}

func (p *Proxy) close() {
	p.mu.Lock()
	p.closed = true
	if p.listener != nil {
		_ = p.listener.Close()
	}
	for l := range p.links {
		l.cut()
	}
	p.changed.Broadcast()
	p.mu.Unlock()
	p.running.Wait()
}
