package smallage

import (
	"crypto/rand"
	"database/sql/driver"
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
)

// JobID names one job for as long as any trace of it exists: in the queue, in the dead letter queue, in its outcome and
// as the owner of its dedup key. It is a type of its own so that no other identifier of the application passes as one.
// The zero JobID names no job. A JobID is comparable and safe for concurrent use.
type JobID struct{ id uuid.UUID }

// NewJobID returns a new time-ordered id (UUIDv7), for callers that bring the id of a job with the option ID.
// It returns an error only where the system's random source fails.
func NewJobID() (JobID, error) {
	id, err := jobIDs.next(time.Now())
	if err != nil {
		return JobID{}, fmt.Errorf("smallage: make a job id: %w", err)
	}
	return JobID{id}, nil
}

var jobIDs idSource

// idSource makes UUIDv7s, each later than the one before: 48 bits of milliseconds, 12 bits of the part of a millisecond,
// and 62 random ones, which are drawn from the system for many ids at a time.
type idSource struct {
	mu     sync.Mutex
	last   uint64 // milliseconds and their part
	random [64 * 8]byte
	unused []byte
}

func (s *idSource) next(now time.Time) (id uuid.UUID, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.unused) == 0 {
		if _, err := rand.Read(s.random[:]); err != nil {
			return id, err
		}
		s.unused = s.random[:]
	}
	const part = uint64(time.Millisecond)
	ns := uint64(now.UnixNano())
	s.last = max(s.last+1, ns/part<<12|ns%part<<12/part)
	binary.BigEndian.PutUint64(id[:], s.last>>12<<16|0x7000|s.last&0xfff)
	copy(id[8:], s.unused[:8])
	id[8] = id[8]&0x3f | 0x80
	clear(s.unused[:8])
	s.unused = s.unused[8:]
	return id, nil
}

// ParseJobID reads the canonical text form of a UUID, as String writes it. Anything else is an error that matches
// ErrInvalid.
func ParseJobID(s string) (JobID, error) {
	return parseJobID([]byte(s))
}

func parseJobID(s []byte) (JobID, error) {
	// The parser also takes urn:uuid: and braces; one job must have one spelling, since keys are made of it.
	if len(s) != 36 {
		return JobID{}, fmt.Errorf("%w job id %q: want a UUID such as 0190b0c2-7f5e-7cc1-a2c4-0d4f6a1b2c3d", ErrInvalid, shorten(string(s)))
	}
	id, err := uuid.ParseBytes(s)
	if err != nil {
		return JobID{}, fmt.Errorf("%w job id %q: %v", ErrInvalid, s, err)
	}
	return JobID{id}, nil
}

// String returns the id as a UUID in its canonical, lower-case form.
func (id JobID) String() string { return id.id.String() }

// IsZero reports whether id names no job.
func (id JobID) IsZero() bool { return id == JobID{} }

// MarshalText implements encoding.TextMarshaler.
func (id JobID) MarshalText() ([]byte, error) { return id.id.MarshalText() }

// UnmarshalText implements encoding.TextUnmarshaler; it reads what ParseJobID reads.
func (id *JobID) UnmarshalText(text []byte) error {
	parsed, err := ParseJobID(string(text))
	if err != nil {
		return err
	}
	*id = parsed
	return nil
}

// Value implements driver.Valuer: the text form, or NULL for the zero id.
func (id JobID) Value() (driver.Value, error) {
	if id.IsZero() {
		return nil, nil
	}
	return id.String(), nil
}

// Scan implements sql.Scanner for text, for 16 bytes as databases with a UUID type return them, and for NULL, which
// gives the zero id.
func (id *JobID) Scan(src any) error {
	switch src := src.(type) {
	case nil:
		*id = JobID{}
		return nil
	case string:
		return id.UnmarshalText([]byte(src))
	case []byte:
		if len(src) == len(id.id) {
			copy(id.id[:], src)
			return nil
		}
		return id.UnmarshalText(src)
	case [16]byte:
		id.id = src
		return nil
	}
	return fmt.Errorf("%w job id: cannot scan %T, want text or 16 bytes", ErrInvalid, src)
}
