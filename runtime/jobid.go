package smallage

import (
	"database/sql/driver"
	"fmt"

	"github.com/google/uuid"
)

// JobID names one job for as long as any trace of it exists: in the queue, in the dead letter queue, in its outcome and
// as the owner of its dedup key. It is a type of its own so that no other identifier of the application passes as one.
// The zero JobID names no job. A JobID is comparable and safe for concurrent use.
type JobID struct{ id uuid.UUID }

// NewJobID returns a new time-ordered id (UUIDv7), for callers that bring the id of a job with the option ID.
// It returns an error only where the system's random source fails.
func NewJobID() (JobID, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return JobID{}, fmt.Errorf("smallage: make a job id: %w", err)
	}
	return JobID{id}, nil
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
