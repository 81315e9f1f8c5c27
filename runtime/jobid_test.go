package smallage_test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	smallage "github.com/smallage/smallage/runtime"
)

func TestAJobIDSurvivesItsTextSQLAndJSONForms(t *testing.T) {
	t.Parallel()
	id := mustID(t)
	parsed, err := smallage.ParseJobID(id.String())
	require.NoError(t, err)
	require.Equal(t, id, parsed)
	require.False(t, id.IsZero())

	encoded, err := json.Marshal(map[smallage.JobID]smallage.JobID{id: id})
	require.NoError(t, err)
	require.JSONEq(t, `{"`+id.String()+`":"`+id.String()+`"}`, string(encoded))
	var decoded map[smallage.JobID]smallage.JobID
	require.NoError(t, json.Unmarshal(encoded, &decoded))
	require.Equal(t, id, decoded[id])

	value, err := id.Value()
	require.NoError(t, err)
	raw := uuid.MustParse(id.String())
	for _, src := range []any{value, []byte(id.String()), raw[:], [16]byte(raw)} {
		var scanned smallage.JobID
		require.NoError(t, scanned.Scan(src), "%T", src)
		require.Equal(t, id, scanned)
	}
	var null smallage.JobID
	require.NoError(t, null.Scan(nil))
	require.True(t, null.IsZero())
	value, err = null.Value()
	require.NoError(t, err)
	require.Nil(t, value)
}

func TestWhatIsNoJobIDIsRefused(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "x", strings.Repeat("z", 36), "{" + uuid.NewString() + "}", "urn:uuid:" + uuid.NewString(), strings.Repeat("a", 1<<20)} {
		_, err := smallage.ParseJobID(s)
		require.ErrorIs(t, err, smallage.ErrInvalid)
		require.Less(t, len(err.Error()), 300)
	}
	var id smallage.JobID
	require.ErrorIs(t, id.Scan(1), smallage.ErrInvalid)
}

func TestJobIDsAreVersion7InOrderAndOfTheirTime(t *testing.T) {
	t.Parallel()
	before := time.Now().Add(-time.Millisecond)
	last := ""
	for range 5000 {
		id, err := smallage.NewJobID()
		require.NoError(t, err)
		u, err := uuid.Parse(id.String())
		require.NoError(t, err)
		require.Equal(t, uuid.Version(7), u.Version())
		require.Equal(t, uuid.RFC4122, u.Variant())
		require.Greater(t, id.String(), last)
		last = id.String()
		sec, nsec := u.Time().UnixTime()
		require.WithinRange(t, time.Unix(sec, nsec), before, time.Now().Add(5*time.Millisecond))
	}
}

func TestJobIDsMadeAtOnceAreDistinct(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	seen := map[smallage.JobID]bool{}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 1000 {
				id, err := smallage.NewJobID()
				mu.Lock()
				if err == nil {
					seen[id] = true
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	require.Len(t, seen, 8000)
}
