package smallage

import (
	"encoding/binary"
	"sync"
)

// recentIDs remembers the last few thousand jobs that were enqueued without asking for a result, so that waiting for
// one fails at once instead of at its timeout. An id has a few places, which those of other ids take in turn; so a few
// are forgotten early, but never the newest.
type recentIDs struct {
	mu    sync.Mutex
	known *[recentSets][recentPlaces]JobID
}

const recentSets, recentPlaces = 1024, 8

func (r *recentIDs) add(id JobID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil {
		r.known = new([recentSets][recentPlaces]JobID)
	}
	set := &r.known[recentSet(id)]
	copy(set[1:], set[:])
	set[0] = id
}

func (r *recentIDs) has(id JobID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil || id.IsZero() {
		return false
	}
	for _, known := range r.known[recentSet(id)] {
		if known == id {
			return true
		}
	}
	return false
}

// recentSet spreads ids by their random end.
func recentSet(id JobID) int { return int(binary.BigEndian.Uint16(id.id[14:])) % recentSets }
