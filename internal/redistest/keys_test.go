package redistest_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/smallage/smallage/internal/redistest"
)

// verdict records how a check ends the test that it is given.
type verdict struct {
	testing.TB
	text string
}

func (v *verdict) Helper() {}

func (v *verdict) Fatalf(format string, args ...any) {
	v.text = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func judge(t *testing.T, check func(testing.TB)) string {
	t.Helper()
	v := &verdict{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		check(v)
	}()
	<-done
	return v.text
}

func TestKeyChecksNameTheOffenders(t *testing.T) {
	t.Parallel()
	rdb, ns := redistest.Shared(t).Client(), redistest.Namespace(t)
	ctx, pattern := t.Context(), ns+":*"
	redistest.RequireNoKeys(t, rdb, pattern)

	require.NoError(t, rdb.Set(ctx, ns+":short", 1, time.Minute).Err())
	redistest.RequireAllKeysHaveTTL(t, rdb, pattern)
	require.Contains(t, judge(t, func(tb testing.TB) { redistest.RequireNoKeys(tb, rdb, pattern) }), ns+":short")

	require.NoError(t, rdb.Set(ctx, ns+":for-ever", 1, 0).Err())
	text := judge(t, func(tb testing.TB) { redistest.RequireAllKeysHaveTTL(tb, rdb, pattern) })
	require.Contains(t, text, ns+":for-ever")
	require.NotContains(t, text, ns+":short")

	for i := range 20 {
		require.NoError(t, rdb.Set(ctx, fmt.Sprint(ns, ":", i), 1, 0).Err())
	}
	require.Contains(t, judge(t, func(tb testing.TB) { redistest.RequireNoKeys(tb, rdb, pattern) }), "and 12 more")
	require.Len(t, redistest.Keys(t, rdb, pattern), 22)
}
