package smallage

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/smallage/smallage/internal/redistest"
)

func TestALookAnsweredWhileItsWatchIsPlacedAnewTiesItToNoLane(t *testing.T) {
	client, err := NewClient(redistest.StartCluster(t).Client(), ClientConfig{Namespace: redistest.Namespace(t), MaxWaitConns: 1})
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()
	id, err := NewJobID()
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() {
		_, err := client.Wait(context.Background(), id, time.Minute)
		ended <- err
	}()
	w := client.waits
	var v *watch
	require.Eventually(t, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		v = w.watches[id]
		return v != nil && v.how == hearsNotices && !v.queued
	}, 10*time.Second, time.Millisecond)

	leaveWhilePlaced(t, w, v)
	require.ErrorIs(t, <-ended, ErrNoResult)
}

func leaveWhilePlaced(t *testing.T, w *waits, v *watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	lane, sent := v.lane, sentLook{v.epoch, v.joined}
	v.queued, v.sent = true, true // a look is under way
	w.unhear(v)                   // and its subscription breaks
	w.place(v)
	require.False(t, lane.answered(v, sent, Result{}, nil))
	require.Empty(t, lane.notices.wanted)
	w.end(v) // the last waiter leaves
}
