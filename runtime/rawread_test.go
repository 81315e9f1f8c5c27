package smallage

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// bulk writes a text as Redis does.
func bulk[T string | []byte](s T) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }

func readReply(resp3 bool, entries []entry) string {
	var b strings.Builder
	if resp3 {
		b.WriteString("%1\r\n")
	} else {
		b.WriteString("*1\r\n*2\r\n")
	}
	b.WriteString(bulk("ns:{q:x}:stream"))
	fmt.Fprintf(&b, "*%d\r\n", len(entries))
	for _, e := range entries {
		b.WriteString("*2\r\n" + bulk(e.id))
		fmt.Fprintf(&b, "*%d\r\n", len(e.fields))
		for _, text := range e.fields {
			b.WriteString(bulk(text))
		}
	}
	return b.String()
}

func TestARawReplyGivesEveryEntryByteForByte(t *testing.T) {
	t.Parallel()
	anyText := rapid.StringOfN(rapid.RuneFrom([]rune("a\r\n$*-0:_é\x00")), 0, 20, -1)
	var buffer readBuffer
	rapid.Check(t, func(t *rapid.T) {
		var want []entry
		for range rapid.IntRange(1, 5).Draw(t, "entries") {
			e := entry{id: []byte(anyText.Draw(t, "id")), fields: [][]byte{}}
			for range rapid.IntRange(0, 4).Draw(t, "fields") {
				e.fields = append(e.fields, []byte(anyText.Draw(t, "name")), []byte(anyText.Draw(t, "value")))
			}
			want = append(want, e)
		}
		for _, resp3 := range []bool{false, true} {
			reply := readReply(resp3, want)
			got, refused, err := buffer.parse([]byte(reply))
			require.NoError(t, err)
			require.False(t, refused)
			require.Len(t, got, len(want))
			for i := range want {
				require.Equal(t, want[i].id, got[i].id)
				require.Equal(t, want[i].fields, append([][]byte{}, got[i].fields...))
			}
			cut := rapid.IntRange(1, len(reply)-1).Draw(t, "cut")
			_, refused, err = buffer.parse([]byte(reply[:cut]))
			require.False(t, refused)
			require.Error(t, err, "a reply that ends early")
		}
	})
}

func TestARawReplyWithoutEntriesIsNilAndAnErrorIsLeftToTheClient(t *testing.T) {
	t.Parallel()
	var buffer readBuffer
	for _, reply := range []string{"*-1\r\n", "_\r\n"} {
		_, refused, err := buffer.parse([]byte(reply))
		require.ErrorIs(t, err, redis.Nil, reply)
		require.False(t, refused)
	}
	for _, reply := range []string{"-NOGROUP no such key\r\n", "-MOVED 7 127.0.0.1:1\r\n", "!21\r\nSYNTAX invalid syntax\r\n"} {
		_, refused, err := buffer.parse([]byte(reply))
		require.NoError(t, err, reply)
		require.True(t, refused, reply)
	}
	for _, reply := range []string{"", "+OK\r\n", ":1\r\n", "*2\r\n*2\r\n", "*1\r\n*2\r\n$1\r\nx\r\n*1000000000\r\n", "$3\r\nabc\r\n"} {
		_, refused, err := buffer.parse([]byte(reply))
		require.ErrorIs(t, err, errReply, reply)
		require.False(t, refused)
	}
	deleted, _, err := buffer.parse([]byte("*1\r\n*2\r\n" + bulk("s") + "*1\r\n*2\r\n" + bulk("1-0") + "*-1\r\n"))
	require.NoError(t, err)
	require.Len(t, deleted, 1)
	require.Empty(t, deleted[0].fields)
}

func FuzzParseRead(f *testing.F) {
	f.Add([]byte(readReply(false, []entry{{id: []byte("1-0"), fields: [][]byte{[]byte("v"), []byte("1")}}})))
	f.Add([]byte("*1\r\n*2\r\n$1\r\nx\r\n*-5\r\n"))
	f.Add([]byte("*1\r\n*2\r\n$9223372036854775807\r\n"))
	f.Fuzz(func(t *testing.T, reply []byte) {
		var buffer readBuffer
		entries, refused, err := buffer.parse(reply)
		if err != nil || refused {
			require.Empty(t, entries)
		}
	})
}
