package smallage

import (
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// keptConn lends one connection to a caller who sends one job after another. To take it from the pool for each job, with a
// look whether it still lives, and to give it back, is more than all that this package does with the job. It is held for
// moments, and only where the pool has plenty. The zero value keeps none.
type keptConn struct {
	rdb *redis.Client // nil: none is kept

	mu    sync.Mutex
	conn  *redis.Conn // nil: none is held
	lent  bool
	over  bool      // its time ended while it was lent
	last  time.Time // when a job was sent last
	again time.Time // when the pool is asked again whether it has plenty
}

const (
	keepWithin = time.Millisecond // a connection that was good so lately needs no look

	// What waits for a connection to be released waits no longer: others who need one, new credentials, another master, a
	// hook that was added.
	keepFor = 20 * time.Millisecond
)

// mayHold returns the client if one of its connections may be held for moments, else nil: a cluster has many servers, in a
// small pool one is too much, where the pool is bounded otherwise or nobody waits long others would fail, and with
// client-side caching connections stand for what is cached.
func mayHold(rdb redis.UniversalClient) *redis.Client {
	single, ok := rdb.(*redis.Client)
	if !ok {
		return nil
	}
	o := single.Options()
	if o.PoolSize < 10 || o.MaxActiveConns > 0 || o.PoolTimeout < time.Second || o.ClientSideCache != nil || o.ClientSideCacheConfig != nil {
		return nil
	}
	return single
}

// plenty holds where at least half of what the pool may have is not in use.
func plenty(rdb *redis.Client) bool {
	s := rdb.PoolStats()
	return int(s.TotalConns)-int(s.IdleConns) <= rdb.Options().PoolSize/2
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
	case k.lent || k.conn == nil && (!atOnce || now.Before(k.again)):
		k.mu.Unlock()
		return nil
	case !atOnce:
		k.release()
		return nil
	case k.conn == nil:
		if !plenty(k.rdb) {
			k.again = now.Add(keepFor)
			k.mu.Unlock()
			return nil
		}
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

// expire ends the time of a connection, if it is still held; of any, where conn is nil.
func (k *keptConn) expire(conn *redis.Conn) {
	k.mu.Lock()
	mine := k.conn != nil && (conn == nil || k.conn == conn)
	if mine && !k.lent {
		k.release()
		return
	}
	k.over = k.over || mine
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
