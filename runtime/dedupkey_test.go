package smallage

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

type keyName string

type keyColor struct{ text string }

func (c keyColor) MarshalText() ([]byte, error) {
	if c.text == "" {
		return nil, errors.New("no color")
	}
	return []byte(c.text), nil
}

func (c *keyColor) UnmarshalText(text []byte) error { c.text = string(text); return nil }

func TestKeyTextIsCanonical(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 5, 4, 3, 2, 1, 500, time.FixedZone("x", 3600))
	id := uuid.MustParse("0190b0c2-7f5e-7cc1-a2c4-0d4f6a1b2c3d")
	for want, got := range map[string]string{
		"a:b%":                                 KeyText("a:b%", ""),
		"a%3Ab%25":                             KeyText("a:b%", ":"),
		"x y":                                  KeyText(keyName("x y"), ":"),
		"-7":                                   KeyText(int8(-7), "+"),
		"18446744073709551615":                 KeyText(uint64(1<<64-1), ":"),
		"true":                                 KeyText(true, ":"),
		"2026-05-04T02:02:01.0000005Z":         KeyText(at, ""),
		"2026-05-04T02%3A02%3A01.0000005Z":     KeyText(at, ":"),
		"0190b0c2-7f5e-7cc1-a2c4-0d4f6a1b2c3d": KeyText(id, ":"),
		"0190b0c2%2D7f5e%2D7cc1%2Da2c4%2D0d4f6a1b2c3d": KeyText(id, "-"),
		"red%20one": KeyText(keyColor{"red one"}, " "),
	} {
		require.Equal(t, want, got)
	}
	require.Equal(t, KeyText(at, ":"), KeyText(at.UTC(), ":"), "one instant has one text")
}

func TestKeyTextKeepsDifferentValuesApart(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a:%3A/]{0,6}`)
		a, b, c, d := text.Draw(t, "a"), text.Draw(t, "b"), text.Draw(t, "c"), text.Draw(t, "d")
		one := KeyText(a, ":") + ":" + KeyText(b, ":")
		other := KeyText(c, ":") + ":" + KeyText(d, ":")
		require.Equal(t, a == c && b == d, one == other, "%q %q, %q %q", a, b, c, d)
	})
}

func TestValueWithoutKeyTextIsAnErrorWhenEnqueuing(t *testing.T) {
	t.Parallel()
	type args struct {
		N int `json:"n"`
	}
	task := Task[args]{Name: "t", DedupKey: func(args) string { return KeyText(keyColor{}, "") }}
	var q CollectingEnqueuer
	_, err := task.Enqueue(context.Background(), &q, args{}, nil)
	require.ErrorIs(t, err, ErrInvalid)
	require.ErrorContains(t, err, "no color")
	require.Empty(t, q.Jobs())

	require.Panics(t, func() { KeyText(1.5, "") })
	task.DedupKey = func(args) string { panic("of the application") }
	require.PanicsWithValue(t, "of the application", func() { _, _ = task.Enqueue(context.Background(), &q, args{}, nil) })
}

func TestTextThatJSONWouldChangeIsRefused(t *testing.T) {
	t.Parallel()
	type args struct {
		S string `json:"s"`
	}
	task := Task[args]{Name: "t"}
	for s, ok := range map[string]bool{
		"": true, "\ufffd": true, `\ufffd`: true, `\\ufffd`: true, "\xff": false, "a\\\xffb": false, `\ufffd` + "\xff": false, "ok\xc3": false,
	} {
		var q CollectingEnqueuer
		_, err := task.Enqueue(context.Background(), &q, args{s}, nil)
		if !ok {
			require.ErrorIs(t, err, ErrInvalid, "%q", s)
			continue
		}
		require.NoError(t, err, "%q", s)
		decoded, err := DecodeArgs[args](q.Jobs()[0])
		require.NoError(t, err)
		require.Equal(t, s, decoded.S)
	}
}

func TestTableCallRunsAHandlerInPlace(t *testing.T) {
	t.Parallel()
	type args struct {
		N int `json:"n"`
	}
	task := Task[args]{Name: "t", Aliases: []string{"old"}}
	table := NewTable(HandleValue(&task, func(_ context.Context, a args) ([]byte, error) { return make([]byte, a.N), nil }))
	for _, name := range []string{"t", "old"} {
		value, err := table.Call(context.Background(), Job{Task: name, Args: []byte(`{"n":3}`)})
		require.NoError(t, err)
		require.Len(t, value, 3)
	}
	_, err := table.Call(context.Background(), Job{Task: "t", Args: []byte(`{}`)})
	require.ErrorIs(t, err, ErrInvalid)
	require.ErrorContains(t, err, `"n" is missing`)
	_, err = table.Call(context.Background(), Job{Task: "other", Args: []byte(`{}`)})
	require.ErrorIs(t, err, ErrInvalid)
}
