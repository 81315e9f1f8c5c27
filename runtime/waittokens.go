package smallage

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// tokens lets the first few watches of a lane block on their tokens, each on a connection of its own. That needs nothing
// but the keys: no notice and no permission to subscribe. All others are told by notices.
type tokens struct {
	lane *waitLane
	busy int
	idle []*tokenConn
}

// maxTokenConns is how many connections block at most: past these, one subscription is cheaper.
const maxTokenConns = 4

// blockSlice bounds one blocking command, so that a connection that broke without a word is noticed.
const blockSlice = 10 * time.Second

// free reports whether one more watch may block. One of the waits' connections is the subscription's.
func (t *tokens) free() bool {
	return t.busy < min(maxTokenConns, t.lane.waits.client.cfg.MaxWaitConns-1)
}

// take returns a connection to block on, or nil where there is none left.
func (t *tokens) take() *tokenConn {
	if !t.free() {
		return nil
	}
	var conn *tokenConn
	if n := len(t.idle); n > 0 {
		conn, t.idle = t.idle[n-1], t.idle[:n-1]
	} else if conn = newTokenConn(t.lane.rdb); conn == nil {
		return nil
	}
	conn.ready(t.lane.waits.ctx)
	t.busy++
	return conn
}

// block waits for the watch's token and reads its outcome right after it. It goes on to notices where the connection
// fails, or where a token is there and no outcome: somebody cleared only one of them, and blocking again would spin.
func (t *tokens) block(v *watch, conn *tokenConn) {
	w := t.lane.waits
	for {
		w.mu.Lock()
		joined := v.joined
		w.mu.Unlock()
		taken, res, err := conn.await(v)
		if taken {
			point("wait-token")
		}
		w.mu.Lock()
		mine := v.blocked == conn
		if mine && err == nil && !res.Missing() {
			mine, v.how, v.blocked = false, hearsNothing, nil
			w.found(v, res, joined)
		} else if mine && err == nil && !taken {
			v.looked = lookedNow()
			w.mu.Unlock()
			continue
		}
		t.busy--
		conn.used = time.Now()
		t.idle = append(t.idle, conn)
		if w.closed {
			t.closeIdle(time.Time{})
		}
		if mine && !v.over {
			v.how, v.blocked, v.deaf = hearsNothing, nil, true
			t.lane.look(v)
		}
		w.mu.Unlock()
		return
	}
}

// closeIdle closes connections that nobody has used for a while; all of them for the zero time.
func (t *tokens) closeIdle(now time.Time) {
	kept := t.idle[:0]
	for _, conn := range t.idle {
		if !now.IsZero() && now.Sub(conn.used) < lingering {
			kept = append(kept, conn)
			continue
		}
		conn.cancel()
		t.lane.waits.running.Go(func() { _ = conn.rdb.Close() })
	}
	clear(t.idle[len(kept):])
	t.idle = kept
}

// tokenConn is a connection that blocks. go-redis cannot end a command that blocks, so it is cut instead: the server
// then forgets the command, and the next use dials anew.
type tokenConn struct {
	rdb  *redis.Client // of one connection
	used time.Time     // guarded by waits.mu

	mu     sync.Mutex
	ctx    context.Context // ends with interrupt
	cancel context.CancelFunc
	conn   net.Conn
}

var errInterrupted = errors.New("smallage: the wait is over")

// newTokenConn returns nil for a client that cannot be copied.
func newTokenConn(rdb redis.UniversalClient) *tokenConn {
	client, ok := rdb.(*redis.Client)
	if !ok {
		return nil
	}
	t := &tokenConn{}
	opt := connOptions(client, 1, blockSlice)
	dial := opt.Dialer
	opt.DialerRetries = 1
	opt.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.ctx.Err() != nil {
			cutOff(conn)
			return nil, errInterrupted
		}
		t.conn = conn
		return conn, nil
	}
	t.rdb = redis.NewClient(opt)
	return t
}

// ready makes a connection usable again after an interrupt.
func (t *tokenConn) ready(ctx context.Context) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cancel != nil {
		t.cancel()
	}
	t.ctx, t.cancel = context.WithCancel(ctx)
}

// await blocks until there is a token, which it takes and puts back in one step: no waiter can die in between, and the
// list keeps its TTL. The outcome is asked for in the same flush, which the server answers when the block has ended: so
// it is here after half a round trip. A raw command, since go-redis rounds timeouts up to whole seconds.
func (t *tokenConn) await(v *watch) (taken bool, res Result, err error) {
	t.mu.Lock()
	ctx := t.ctx
	t.mu.Unlock()
	if ctx.Err() != nil {
		return false, Result{}, errInterrupted
	}
	pipe := t.rdb.Pipeline()
	move := pipe.Do(ctx, "BLMOVE", v.token, v.token, "LEFT", "LEFT", fmt.Sprintf("%.3f", blockSlice.Seconds()))
	fields := pipe.HGetAll(ctx, v.key)
	_, _ = pipe.Exec(ctx) // each command holds its own error
	if err := move.Err(); err != nil && !isNilReply(err) {
		return false, Result{}, err
	}
	found, err := fields.Result()
	return move.Err() == nil, decodeResult(v.id, found), err
}

// interrupt ends the command that blocks. It does not block itself.
func (t *tokenConn) interrupt() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cancel()
	if t.conn != nil {
		cutOff(t.conn)
		t.conn = nil
	}
}

// cutOff closes a connection without the farewell of TLS, which may wait for a server that does not answer.
func cutOff(conn net.Conn) {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	_ = conn.Close()
}
