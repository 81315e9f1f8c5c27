package smallage

import (
	"math/rand/v2"
	"time"
)

// backoff is the delay before the attempt that follows number attempt (from 1): first, doubling up to longest, with
// ±20 % of jitter. Near longest the jitter is cut at its upper end, so that jobs which wait for longest do not come back
// all at once. It is always at least a millisecond.
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
	spread := d / 5
	least, most := d-spread, min(longest-d, spread)+d // never beyond longest, and so never beyond what fits
	if most > least {
		d = least + time.Duration(rand.Int64N(int64(most-least)+1))
	}
	return max(d, time.Millisecond)
}
