package smallage

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// unblocker ends the blocking reads of a worker that stops, where the server lets it (CLIENT ID, CLIENT UNBLOCK): a
// read cannot be abandoned, since it would still take entries. Otherwise the stop waits for the reads, about a second.
type unblocker struct {
	known   atomic.Bool // there was a connection
	unknown atomic.Bool // the server knows no CLIENT ID
	mu      sync.Mutex
	ids     []int64 // of the newest connections
}

// connected notes a new connection. A server without CLIENT ID costs nothing but the wait at the end.
func (u *unblocker) connected(ctx context.Context, conn *redis.Conn) {
	id, err := conn.ClientID(ctx).Result()
	u.known.Store(true)
	if err != nil {
		u.unknown.Store(redis.HasErrorPrefix(err, "ERR"))
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ids = append(u.ids, id)
}

// blockFor shortens a blocking read where nothing could end it but its time, as on the embedded server, and before that
// is known. A server that merely forbids CLIENT ID would have to answer too many short reads.
func (u *unblocker) blockFor(longest time.Duration) time.Duration {
	if u.unknown.Load() || !u.known.Load() {
		return min(longest, shortBlock)
	}
	return longest
}

const shortBlock = 200 * time.Millisecond

// until unblocks the readers again and again until they have ended: one may be just about to block.
func (u *unblocker) until(s *session, readers *sync.WaitGroup) {
	ended := make(chan struct{})
	go func() {
		readers.Wait()
		close(ended)
	}()
	for {
		u.mu.Lock()
		ids := u.ids[max(0, len(u.ids)-len(s.queues)):] // older connections are closed, and a restarted server reuses ids
		u.mu.Unlock()
		for _, id := range ids {
			if s.rdb.ClientUnblock(s.base, id).Err() != nil {
				<-ended
				return
			}
		}
		if waitFor(ended, 20*time.Millisecond) {
			return
		}
	}
}
