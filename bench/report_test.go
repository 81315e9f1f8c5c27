package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTableHasMediansRangesRatiosAndCounts(t *testing.T) {
	t.Parallel()
	b := &benchmark{
		rows: []row{
			{name: "drain", about: "no-op jobs", who: []string{"ideal", "asynq", "river"}, show: []column{rate, redisCPU}},
			{name: "price: a", table: "price", label: "a", about: "with", who: []string{"smallage"}, show: []column{rate}},
			{name: "price: b", table: "price", label: "b", about: "with", who: []string{"smallage"}, show: []column{rate}},
		},
		found: map[cell][]metrics{
			{"drain", "ideal"}:       {{"rate": 3000, "redis": 1, "jobs": 10}, {"rate": 1000, "redis": 2, "jobs": 10}, {"rate": 2000, "redis": 4, "jobs": 10}},
			{"drain", "asynq"}:       {{"rate": 100, "redis": 8, "jobs": 5}},
			{"price: a", "smallage"}: {{"rate": 4000, "jobs": 7}},
			{"price: b", "smallage"}: {{"rate": 1000, "jobs": 7}, {"rate": 2000, "jobs": 8}},
		},
	}
	var out strings.Builder
	b.table(&out, "drain")
	b.table(&out, "price")
	require.Equal(t, `
### drain

No-op jobs

|  | jobs/s | Redis CPU s/100k | jobs/s, to ideal | jobs |
|---|---:|---:|---:|---:|
| ideal | 2.0k (1.0k to 3.0k) | 2.00 (1.00 to 4.00) | 1.00 | 30 |
| asynq | 0.1k (0.1k to 0.1k) | 8.00 (8.00 to 8.00) | 0.05 | 5 |
| river | – | – | – | 0 |

### price

With

|  | jobs/s | jobs/s, to a | jobs |
|---|---:|---:|---:|
| a | 4.0k (4.0k to 4.0k) | 1.00 | 7 |
| b | 1.5k (1.0k to 2.0k) | 0.38 | 15 |
`, out.String())
	require.Equal(t, 57, b.jobs())
}

func TestNoRoundBeginsThatWouldEndTooLate(t *testing.T) {
	t.Parallel()
	b := &benchmark{size: size{limit: time.Hour}, began: time.Now().Add(-50 * time.Minute), again: 20 * time.Minute}
	require.True(t, b.timeLeft(), "the first round always takes place")
	b.rounds = 1
	require.False(t, b.timeLeft())
	b.again = 5 * time.Minute
	require.True(t, b.timeLeft())
}

func TestPiecesCountByTheirJobs(t *testing.T) {
	t.Parallel()
	merged := merge([]metrics{{"jobs": 100, "rate": 100, "cpu": 1}, {"jobs": 300, "rate": 100, "cpu": 2}, {"jobs": 400, "rate": 50, "cpu": 4}})
	require.Equal(t, metrics{"jobs": 800, "rate": 800.0 / 12, "cpu": (100*1 + 300*2 + 400*4) / 800.0}, merged)
}
