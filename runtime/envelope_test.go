package smallage

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// entryOf is a fresh job as a worker reads it.
func entryOf(t require.TestingT, job *Job, enqueuedAt int64) [][]byte {
	fields, err := appendFields(nil, job, &jobText{job: job, enqueuedAt: enqueuedAt})
	require.NoError(t, err)
	texts := make([][]byte, len(fields))
	for i, field := range fields {
		switch field := field.(type) {
		case []byte:
			texts[i] = field
		default:
			texts[i] = []byte(fmt.Sprint(field))
		}
	}
	return texts
}

func TestAFreshJobIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		job := Job{
			Task: rapid.OneOf(rapid.StringMatching(`[a-z]+\.[A-Z][a-z]+`), rapid.StringN(1, 40, -1)).Draw(t, "task"),
			Args: json.RawMessage(rapid.SampledFrom([]string{`{}`, ` { "a" : 1 } `, `{"a":"b c  d"}`, "{\n}"}).Draw(t, "args")),
		}
		copy(job.ID.id[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
		if rapid.Bool().Draw(t, "more") {
			job.Dedup, job.ResultTTL = rapid.StringN(1, 20, -1).Draw(t, "dedup"), time.Duration(rapid.Int64Range(1, 1e9).Draw(t, "ttl"))*time.Millisecond
			job.Headers = map[string]string{"k": rapid.StringMatching(`[ -~]*`).Draw(t, "header")}
		}
		now := rapid.Int64Range(0, 1<<45).Draw(t, "now")
		var got envelope
		require.NoError(t, got.decode(entryOf(t, &job, now), nil))
		want := envelope{
			version: 1, id: job.ID, task: job.Task, args: job.Args, enqueuedAt: now, attempt: 1,
			dedup: job.Dedup, resultTTL: job.ResultTTL, headers: job.Headers,
		}
		require.Equal(t, want, got)
	})
}

func TestAnEntryWithAFieldForEachPartIsTheSameJob(t *testing.T) {
	t.Parallel()
	id, err := NewJobID()
	require.NoError(t, err)
	var one, each envelope
	require.NoError(t, one.decode(texts("job", "1 "+id.String()+" 7 test.Echo {}"), nil))
	require.NoError(t, each.decode(texts("v", "1", "id", id.String(), "task", "test.Echo", "args", "{}", "enqueued_at", "7", "attempt", "1"), nil))
	require.Equal(t, one, each)
	var apart envelope
	require.NoError(t, apart.decode(texts("task", "test.Echo", "job", "1 "+id.String()+" 7  {}"), nil))
	require.Equal(t, one, apart, "the task is a field of its own, wherever it stands")
	var both envelope
	require.NoError(t, both.decode(texts("id", id.String(), "enqueued_at", "7", "job", "1 x 8 test.Echo {}"), nil))
	require.Equal(t, one, both, "a field of its own counts")
}

func TestAJobWithoutAllItsPartsIsMalformedAndShowsWhatItHas(t *testing.T) {
	t.Parallel()
	id, err := NewJobID()
	require.NoError(t, err)
	parts := []string{"1", id.String(), "7", "test.Echo"}
	for n := range len(parts) + 1 {
		var e envelope
		err := e.decode(texts("job", strings.Join(parts[:n], " ")), nil)
		require.ErrorContains(t, err, "field job has "+strconv.Itoa(max(n, 1))+" of 5 parts")
		require.Equal(t, n > 1, e.id == id)
		require.Equal(t, n > 3, e.task == "test.Echo")
	}
	var e envelope
	require.ErrorContains(t, e.decode(texts("job", "1 "+id.String()+" 7 test.Echo "), nil), "args is missing")
	require.ErrorContains(t, e.decode(texts("job", "1 "+id.String()+" 7  {}"), nil), "task is missing")
	require.ErrorContains(t, e.decode(texts("job", " "+id.String()+" 7 test.Echo {}"), nil), "v is missing")
	require.ErrorContains(t, e.decode(texts("job", "x "+id.String()+" 7 test.Echo {}"), nil), `field v is "x"`)
	require.ErrorContains(t, e.decode(texts("job", "1 "+id.String()+" now test.Echo {}"), nil), `field enqueued_at is "now"`)
	require.NoError(t, e.decode(texts("job", "2 "+id.String()+" and what else a newer version has"), nil), "is for a newer worker")
	require.Equal(t, id, e.id)
	require.Equal(t, 2, e.version)
}

func TestWhoeverTracesCommandsSeesTheJob(t *testing.T) {
	t.Parallel()
	id, err := NewJobID()
	require.NoError(t, err)
	job := &Job{ID: id, Task: "test.Echo", Args: json.RawMessage(`{"text":"x"}`)}
	fields, err := appendFields([]any{"XADD", "s", "*"}, job, &jobText{job: job, enqueuedAt: 7})
	require.NoError(t, err)
	require.Contains(t, redis.NewStringCmd(t.Context(), fields...).String(), "job 1 "+id.String()+` 7 test.Echo {"text":"x"}`)
}

func texts(all ...string) [][]byte {
	out := make([][]byte, len(all))
	for i, text := range all {
		out[i] = []byte(text)
	}
	return out
}
