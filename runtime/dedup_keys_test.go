package smallage_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/smallage/smallage/internal/redistest"
	smallage "github.com/smallage/smallage/runtime"
)

// oddKeys are keys that careless joining, escaping or normalising would mix up.
var oddKeys = []string{
	"a", "a:", ":a", "a:b", "a%3Ab", "a%3ab", "a/b", "{a}", "{a", "a}", "{}", "}{", "{{a}}", "%", "%%", "%7B", " ", "  ", "a ", " a",
	"\n", "\r\n", "\t", "\x00", "a\x00", "a\x00b", "\xff", "\xfe", "caf\u00e9", "cafe\u0301", "Caf\u00e9", "\u00e9", "*", "?", "[a]", `\`, `"`, "'",
	"a,b", "a b", "A", "claimed:a", "done:a", strings.Repeat("k", smallage.MaxDedupKeyBytes),
	strings.Repeat("k", smallage.MaxDedupKeyBytes-1), strings.Repeat("{", smallage.MaxDedupKeyBytes),
}

func TestNoTwoDifferentKeysCollide(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var mu sync.Mutex
	runs := map[string]int{}
	b.work(smallage.WorkerConfig{}, echoTable(func(_ context.Context, text string) ([]byte, error) {
		mu.Lock()
		defer mu.Unlock()
		runs[text]++
		return nil, nil
	}))
	ids := map[string]smallage.JobID{}
	for _, key := range oddKeys {
		ids[key] = b.gated(key, "x")
	}
	for key, id := range ids {
		require.True(t, b.outcome(id).OK(), "key %q", key)
	}
	for key, id := range ids {
		b.requireDuplicate(b.gated(key, "x"), id, key)
		info, err := b.client.Dedup(context.Background(), key)
		require.NoError(t, err)
		require.Equal(t, id, info.Owner, "key %q", key)
	}
	require.Equal(t, map[string]int{"x": len(oddKeys)}, runs)
	require.Len(t, redistest.Keys(t, b.rdb, b.ns+":{d:*}"), len(oddKeys))
	redistest.RequireAllKeysHaveTTL(t, b.rdb, b.ns+":{d:*}")
}

func TestKeysThatNoJobCanHaveAreRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for name, key := range map[string]string{"empty": "", "64 KiB": strings.Repeat("k", 64<<10), "one byte too long": strings.Repeat("k", smallage.MaxDedupKeyBytes+1)} {
		id, err := echo.Enqueue(context.Background(), b.client, textArgs{"x"}, []smallage.Option[textArgs]{echoWith.Dedup(key)})
		require.ErrorIs(t, err, smallage.ErrInvalid, name)
		require.True(t, id.IsZero())
	}
	require.Zero(t, b.rdb.Exists(context.Background(), b.key("echo", "stream")).Val(), "nothing was enqueued")
}

func TestTwoTasksWithOneKeyExcludeEachOther(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	other := smallage.Task[textArgs]{Name: "test.Other", Queue: "other"}
	b.work(smallage.WorkerConfig{}, echoTable(func(context.Context, string) ([]byte, error) { return nil, nil }),
		smallage.NewTable(smallage.Handle(&other, func(context.Context, textArgs) error { return nil })))
	first := b.gated("shared", "a")
	require.True(t, b.outcome(first).OK())
	second, err := other.Enqueue(context.Background(), b.client, textArgs{"b"},
		[]smallage.Option[textArgs]{echoWith.Dedup("shared"), echoWith.ResultTTL(time.Minute)})
	require.NoError(t, err)
	b.requireDuplicate(second, first, "shared")
}

func TestNamespacesDoNotShareKeys(t *testing.T) {
	t.Parallel()
	for range 2 {
		b := newBench(t)
		b.work(smallage.WorkerConfig{}, echoTable(func(context.Context, string) ([]byte, error) { return nil, nil }))
		require.True(t, b.outcome(b.gated("mine", "a")).OK())
	}
}

// A directive's template joins the texts of values and literals; of each literal between two values one character, its
// first that is neither a letter, a digit nor '%', is escaped inside of all values.
func TestDifferentArgumentsNeverGiveOneKey(t *testing.T) {
	t.Parallel()
	const literals, values = `:/-|a0%`, `:/-|a0%23AF`
	text := func(alphabet string) *rapid.Generator[string] {
		return rapid.Custom(func(t *rapid.T) string {
			return string(rapid.SliceOfN(rapid.SampledFrom([]byte(alphabet)), 0, 5).Draw(t, "text"))
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 3).Draw(t, "values")
		between := make([]string, n+1)
		separators := ""
		for i := range between {
			between[i] = text(literals).Draw(t, "literal")
			if 0 < i && i < n {
				separator := rapid.SampledFrom([]string{":", "/", "-", "|"}).Draw(t, "separator")
				between[i] = strings.Trim(between[i], ":/-|") + separator + text(literals).Draw(t, "rest")
				at := strings.IndexAny(between[i], ":/-|")
				if !strings.Contains(separators, between[i][at:at+1]) {
					separators += between[i][at : at+1]
				}
			}
		}
		key := func(args []string) string {
			var b strings.Builder
			for i, arg := range args {
				b.WriteString(between[i])
				b.WriteString(smallage.KeyText(arg, separators))
			}
			b.WriteString(between[n])
			return b.String()
		}
		one := rapid.SliceOfN(text(values), n, n).Draw(t, "one")
		other := rapid.SliceOfN(text(values), n, n).Draw(t, "other")
		if rapid.Bool().Draw(t, "joined alike") { // the other list is the first one cut at another place
			joined := strings.Join(one, separators)
			other = make([]string, n)
			for i := range n {
				cut := rapid.IntRange(0, len(joined)).Draw(t, "cut")
				other[i], joined = joined[:cut], joined[cut:]
			}
		}
		same := strings.Join(one, "\x00") == strings.Join(other, "\x00")
		if same != (key(one) == key(other)) {
			t.Fatalf("%q and %q give %q and %q with %q between them", one, other, key(one), key(other), between)
		}
	})
}

type port uint16

type upper string // its text form is not its bytes

func (u upper) MarshalText() ([]byte, error) { return []byte(strings.ToUpper(string(u))), nil }

func TestKeyTextIsTheCanonicalTextOfAValue(t *testing.T) {
	t.Parallel()
	moment := time.Date(2026, 3, 29, 2, 30, 0, 120, time.FixedZone("CEST", 7200))
	id, err := smallage.ParseJobID("0190b0c2-7f5e-7cc1-a2c4-0d4f6a1b2c3d")
	require.NoError(t, err)
	for want, got := range map[string]string{
		"a%3Ab%25":                             smallage.KeyText("a:b%", ":"),
		"a:b%":                                 smallage.KeyText("a:b%", ""),
		"-9223372036854775808":                 smallage.KeyText(int64(-1<<63), ":"),
		"18446744073709551615":                 smallage.KeyText(uint64(1<<64-1), ":"),
		"%2D1":                                 smallage.KeyText(-1, "-"),
		"443":                                  smallage.KeyText(port(443), ":"),
		"true":                                 smallage.KeyText(true, ":"),
		"SHOUT":                                smallage.KeyText(upper("shout"), ":"),
		"0190b0c2-7f5e-7cc1-a2c4-0d4f6a1b2c3d": smallage.KeyText(id, ":"),
		"2026-03-29T00:30:00.00000012Z":        smallage.KeyText(moment, ""),
	} {
		require.Equal(t, want, got)
	}
	require.Equal(t, smallage.KeyText(moment, ":"), smallage.KeyText(moment.In(time.UTC), ":"), "one instant, one key")
}
