package smallage

import (
	"math/rand/v2"
	"time"
)

// backoff is the delay before the attempt that follows number attempt (from 1): first, doubling up to longest, with
// ±20 % of jitter that never leads beyond longest. It is always at least a millisecond.
func backoff(first, longest time.Duration, attempt int) time.Duration {
	d := first
	for i := 1; i < attempt && d < longest; i++ {
		if d > longest/2 {
			d = longest
			break
		}
		d *= 2
	}
	d = min(d, longest)
	spread := int64(d / 5)
	if spread > 0 {
		d += time.Duration(rand.Int64N(2*spread+1) - spread)
	}
	return max(min(d, longest), time.Millisecond)
}
