package smallage

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheLastThousandsOfIDsAreRemembered(t *testing.T) {
	t.Parallel()
	var r recentIDs
	require.False(t, r.has(JobID{}))
	ids := make([]JobID, 20_000)
	for i := range ids {
		id, err := NewJobID()
		require.NoError(t, err)
		require.False(t, r.has(id))
		r.add(id)
		require.True(t, r.has(id))
		ids[i] = id
	}
	missing := 0
	for _, id := range ids[len(ids)-2000:] {
		if !r.has(id) {
			missing++
		}
	}
	require.Less(t, missing, 20)
	require.False(t, r.has(JobID{}))
	for _, id := range ids[:2000] {
		if r.has(id) {
			missing++
		}
	}
	require.Less(t, missing, 100, "old ones make room")
}
