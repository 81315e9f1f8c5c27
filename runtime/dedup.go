package smallage

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// DedupState says what holds a dedup key.
type DedupState string

// The states of a dedup key.
const (
	// DedupFree is a key that nothing holds: the next job of it runs.
	DedupFree DedupState = ""

	// DedupClaimed is a key whose job is being attempted: it runs, waits for its next attempt, or is about to be taken
	// over from a worker that died. Other jobs of the key are skipped.
	DedupClaimed DedupState = "claimed"

	// DedupDone is a key whose job has succeeded within the window. Every job of the key is skipped.
	DedupDone DedupState = "done"
)

// DedupInfo is what a dedup key held when it was looked at.
type DedupInfo struct {
	State DedupState

	// Owner is the job that holds the key; zero where the key is free.
	Owner JobID

	// Remaining is how long the key stays by itself, by Redis's clock; 0 where it is free. Of a done key it is the rest
	// of the window; that of a claim is renewed for as long as its job's worker lives.
	Remaining time.Duration
}

// Dedup looks at a dedup key: what holds it, whose it is, and for how long. A free key is no error; the zero DedupInfo
// says so. Errors match ErrInvalid for a key that no job can have, and otherwise are Redis's. It reads one key.
func (c *Client) Dedup(ctx context.Context, key string) (DedupInfo, error) {
	return c.lookAtDedup(ctx, key, "look at", 0)
}

// ReleaseDedup frees a dedup key, for operators who know that what it guards must be done again, and returns what it
// held. Releasing a free key does nothing. The job that held the key goes on: releasing the claim of one that still runs
// or waits for its next attempt lets another job of the key run beside it, and where that other one has claimed the key
// before the first one's next attempt, the first ends as a duplicate. Errors as for Dedup. It deletes one key.
func (c *Client) ReleaseDedup(ctx context.Context, key string) (DedupInfo, error) {
	return c.lookAtDedup(ctx, key, "release", 1)
}

func (c *Client) lookAtDedup(ctx context.Context, key, what string, release int) (DedupInfo, error) {
	if key == "" {
		return DedupInfo{}, invalidf("dedup key: it is empty; pass the key that the job was enqueued with")
	}
	if len(key) > MaxDedupKeyBytes {
		return DedupInfo{}, invalidf("dedup key of %d bytes: no job has one of more than %d", len(key), MaxDedupKeyBytes)
	}
	reply, err := dedupScript.run(ctx, c.rdb, []string{c.keys.dedup(key)}, release)
	if err != nil {
		return DedupInfo{}, fmt.Errorf("smallage: %s the dedup key %q: %w", what, shorten(key), err)
	}
	value := replyText(replyAt(reply, 0))
	if value == "" {
		return DedupInfo{}, nil
	}
	state, _, _ := strings.Cut(value, ":")
	return DedupInfo{
		State: DedupState(state), Owner: ownerOf(value),
		Remaining: time.Duration(max(replyNumber(replyAt(reply, 1)), 0)) * time.Millisecond,
	}, nil
}

// ownerOf reads the job id out of a dedup value, "claimed:<id>" or "done:<id>"; zero where it is neither.
func ownerOf(value string) JobID {
	_, id, _ := strings.Cut(value, ":")
	owner, _ := ParseJobID(id)
	return owner
}
