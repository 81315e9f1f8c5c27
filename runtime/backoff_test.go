package smallage

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestBackoffIsPositiveGrowsToItsLimitAndNeverOverflows(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		first := time.Duration(rapid.OneOf(
			rapid.Int64Range(int64(time.Second), int64(24*time.Hour)), rapid.Int64Range(1, math.MaxInt64)).Draw(t, "first"))
		longest := time.Duration(rapid.OneOf(
			rapid.Int64Range(int64(first), math.MaxInt64), rapid.Just(int64(first)), rapid.Just(int64(math.MaxInt64))).Draw(t, "longest"))
		last := 0.0
		for attempt := 1; attempt <= 200; attempt++ {
			d := backoff(first, longest, attempt)
			exact := math.Min(float64(first)*math.Pow(2, float64(attempt-1)), float64(longest))
			if d < time.Millisecond || d > max(longest, time.Millisecond) {
				t.Fatalf("attempt %d: %v is not between 1ms and %v", attempt, d, longest)
			}
			// float64 is exact to 53 bits.
			if exact > float64(time.Millisecond)*2 && (float64(d) < exact*0.799 || float64(d) > exact*1.201) {
				t.Fatalf("attempt %d: %v is not within 20 %% of %v", attempt, d, time.Duration(exact))
			}
			if exact < last {
				t.Fatalf("attempt %d: falls from %v to %v", attempt, last, exact)
			}
			last = exact
		}
	})
}

func TestAThousandSimultaneousFailuresComeBackSpreadOut(t *testing.T) {
	t.Parallel()
	for _, attempt := range []int{1, 5, 50} { // the last is at the limit
		slots := map[time.Duration]int{} // of a hundredth of the delay
		const first, longest = time.Second, time.Minute
		base := min(first<<min(attempt-1, 10), longest)
		for range 1000 {
			slots[backoff(first, longest, attempt)*100/base]++
		}
		require.GreaterOrEqual(t, len(slots), 20, "attempt %d: %v", attempt, slots)
		for slot, n := range slots {
			require.Less(t, n, 150, "attempt %d: %d of a thousand come back together, after %d %% of %v", attempt, n, slot, base)
		}
	}
}
