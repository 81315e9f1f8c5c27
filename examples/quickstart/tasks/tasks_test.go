package tasks_test

import (
	"context"
	"testing"
	"testing/fstest"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/smallage/smallage/examples/quickstart/tasks"
	smallage "github.com/smallage/smallage/runtime"
)

var folder = fstest.MapFS{
	"a.txt": {Data: []byte("Celery, celeriac; CELERY!\nÄpfel 2")},
	"b.txt": {Data: []byte("celery and äpfel and äpfel")},
	"c.txt": {},
}

func TestIndexCountsAndSearches(t *testing.T) {
	t.Parallel()
	index := tasks.NewIndex(folder)
	for path, want := range map[string]string{"a.txt": "5", "b.txt": "5", "c.txt": "0"} {
		value, err := tasks.Reindex(t.Context(), index, path)
		require.NoError(t, err)
		require.Equal(t, want, string(value))
	}
	files, words := index.Size()
	require.Equal(t, []int{3, 10}, []int{files, words})
	require.Equal(t, []tasks.Hit{{"a.txt", 2}, {"b.txt", 1}}, index.Search("celery"))
	require.Equal(t, []tasks.Hit{{"a.txt", 3}, {"b.txt", 3}}, index.Search("ÄPFEL celery"), "equals by path")
	require.Empty(t, index.Search("celery parsley"))
	require.Empty(t, index.Search(" ;"))
	require.Equal(t, []string{"celery", "äpfel", "celeriac"}, index.Frequent(5, 5))
	require.Equal(t, []string{"celery"}, index.Frequent(1, 5))
}

func TestReindexTwiceChangesNothing(t *testing.T) {
	t.Parallel()
	index := tasks.NewIndex(folder)
	for range 2 {
		_, err := tasks.Reindex(t.Context(), index, "a.txt")
		require.NoError(t, err)
	}
	require.Equal(t, []tasks.Hit{{"a.txt", 2}}, index.Search("celery"))
}

func TestReindexForgetsAFileThatIsGone(t *testing.T) {
	t.Parallel()
	mine := fstest.MapFS{"a.txt": {Data: []byte("celery")}}
	index := tasks.NewIndex(mine)
	_, err := tasks.Reindex(t.Context(), index, "a.txt")
	require.NoError(t, err)
	delete(mine, "a.txt")
	_, err = tasks.Reindex(t.Context(), index, "a.txt")
	require.ErrorContains(t, err, "reindex a.txt")
	require.Empty(t, index.Search("celery"))

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = tasks.Reindex(ended, index, "a.txt")
	require.ErrorIs(t, err, context.Canceled)
}

// The ledger itself stops nobody from charging twice: that is the dedup key's part, and what the quickstart shows.
func TestLedgerBooksWhateverItIsTold(t *testing.T) {
	t.Parallel()
	var ledger tasks.Ledger
	invoice := uuid.New()
	for _, want := range []string{"receipt-1", "receipt-2"} {
		receipt, err := tasks.Charge(t.Context(), &ledger, invoice)
		require.NoError(t, err)
		require.Equal(t, want, string(receipt))
	}
	require.Equal(t, map[uuid.UUID]int{invoice: 2}, ledger.Booked())
}

func TestChargeIsDeduplicatedByItsInvoice(t *testing.T) {
	t.Parallel()
	var q smallage.CollectingEnqueuer
	invoice := uuid.New()
	_, err := tasks.ChargeEnqueue(t.Context(), &q, invoice)
	require.NoError(t, err)
	jobs := q.Jobs()
	require.Len(t, jobs, 1)
	require.Equal(t, "charge:"+invoice.String(), jobs[0].Dedup)
	require.Equal(t, "billing", jobs[0].Queue)
	args, err := smallage.DecodeArgs[tasks.ChargeArgs](jobs[0])
	require.NoError(t, err)
	require.Equal(t, invoice, args.InvoiceID)
}
