package smallage

import (
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// keptConn lends one connection to a caller who sends one job after another. To take it from the pool for each job, with a
// look whether it still lives, and to give it back, is more than all that this package does with the job. It is held only
// while jobs follow each other at once, and for moments; then the pool has it back. The zero value keeps none.
type keptConn struct {
	rdb *redis.Client // nil: none is kept

	mu   sync.Mutex
	conn *redis.Conn // nil: none is held
	lent bool
	over bool      // its time ended while it was lent
	last time.Time // when a job was sent last
}

const (
	keepWithin = time.Millisecond      // a connection that was good so lately needs no look
	keepFor    = 20 * time.Millisecond // what waits for it to be released waits no longer: new credentials, another master
	holdOutOf  = 10
)

// mayHold returns the client if one of its connections may be held, else nil: a cluster has many servers, in a small pool
// one connection is too much, and with client-side caching connections stand for what is cached.
func mayHold(rdb redis.UniversalClient) *redis.Client {
	single, ok := rdb.(*redis.Client)
	if !ok {
		return nil
	}
	o := single.Options()
	if o.PoolSize < holdOutOf || o.MaxActiveConns > 0 && o.MaxActiveConns < holdOutOf || o.ClientSideCache != nil || o.ClientSideCacheConfig != nil {
		return nil
	}
	return single
}

// borrow returns the connection, which giveBack must get, or nil where the job is to go through the pool.
func (k *keptConn) borrow() *redis.Conn {
	if k.rdb == nil {
		return nil
	}
	now := time.Now()
	k.mu.Lock()
	atOnce := now.Sub(k.last) < keepWithin
	k.last = now
	switch {
	case k.lent:
		k.mu.Unlock()
		return nil
	case !atOnce:
		k.release()
		return nil
	case k.conn == nil:
		conn := k.rdb.Conn()
		k.conn = conn
		time.AfterFunc(keepFor, func() { k.expire(conn) })
	}
	k.lent = true
	conn := k.conn
	k.mu.Unlock()
	return conn
}

// giveBack ends a loan. good says that the connection can be used again.
func (k *keptConn) giveBack(good bool) {
	k.mu.Lock()
	k.lent = false
	if good && !k.over {
		k.mu.Unlock()
		return
	}
	k.release()
}

// expire ends the time of a connection, if it is still held.
func (k *keptConn) expire(conn *redis.Conn) {
	k.mu.Lock()
	if k.conn == conn && !k.lent {
		k.release()
		return
	}
	k.over = k.over || k.conn == conn
	k.mu.Unlock()
}

// release lets the connection go, and k.mu.
func (k *keptConn) release() {
	conn := k.conn
	k.conn, k.over = nil, false
	k.mu.Unlock()
	if conn != nil {
		_ = conn.Close() // the pool closes it where it is not good
	}
}
