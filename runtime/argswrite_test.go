package smallage

import (
	"encoding/json"
	"errors"
	"math/big"
	"net"
	"net/netip"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A type of each sort that has its own way to be written.
type (
	shout  string // MarshalText on the value
	pair   struct{ a, b string }
	grade  int  // MarshalText on the pointer
	flag   bool // MarshalJSON on the value
	answer bool // none
)

func (s shout) MarshalText() ([]byte, error) { return []byte(strings.ToUpper(string(s))), nil }

func (p *pair) MarshalText() ([]byte, error) {
	if p.a == "no" {
		return nil, errors.New("not this one")
	}
	return []byte(p.a + p.b), nil
}
func (g *grade) MarshalText() ([]byte, error) { return []byte{'A' + byte(*g)}, nil }
func (f flag) MarshalJSON() ([]byte, error)   { return json.Marshal(!f) }

// writtenArgs has a parameter of every kind that an argsWriter writes itself.
type writtenArgs struct {
	Text   string        `json:"text"`
	On     bool          `json:"on"`
	Answer answer        `json:"answer"`
	Small  int8          `json:"small"`
	Large  int64         `json:"large"`
	Count  uint16        `json:"count"`
	Most   uint64        `json:"most"`
	ID     uuid.UUID     `json:"id"`
	Job    JobID         `json:"job"`
	Addr   netip.Addr    `json:"addr"`
	IP     net.IP        `json:"ip"`
	Span   time.Duration `json:"span"`
	Shout  shout         `json:"shout"`
	Pair   pair          `json:"pair"`
	Grade  grade         `json:"grade"`
}

func TestArgumentsAreWrittenAsEncodingJSONWritesThem(t *testing.T) {
	t.Parallel()
	require.NotNil(t, newArgsWriter(reflect.TypeFor[writtenArgs]()))
	// Mostly of what needs no escapes, so that not every value is left to encoding/json.
	text := rapid.OneOf(rapid.StringMatching(`[ -~]{0,6}`), rapid.StringMatching(`[a-z./ ]{0,40}`), rapid.StringMatching(`[a-z]{3}`), rapid.String())
	rapid.Check(t, func(t *rapid.T) {
		args := writtenArgs{
			Text: text.Draw(t, "text"), On: rapid.Bool().Draw(t, "on"), Answer: answer(rapid.Bool().Draw(t, "answer")),
			Small: rapid.Int8().Draw(t, "small"), Large: rapid.Int64().Draw(t, "large"), Count: rapid.Uint16().Draw(t, "count"),
			Most: rapid.Uint64().Draw(t, "most"), Span: time.Duration(rapid.Int64().Draw(t, "span")),
			Shout: shout(text.Draw(t, "shout")), Pair: pair{rapid.SampledFrom([]string{"", "no", "yes", "<"}).Draw(t, "a"), text.Draw(t, "b")},
			Grade: grade(rapid.IntRange(0, 25).Draw(t, "grade")),
		}
		copy(args.ID[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
		copy(args.Job.id[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "job"))
		if rapid.Bool().Draw(t, "v6") {
			args.Addr = netip.AddrFrom16(args.ID)
			args.IP = net.IP(args.Job.id[:])
		}
		want, wantErr := json.Marshal(&args)
		written := argsWriterOf(reflect.TypeFor[writtenArgs]()).write(reflect.ValueOf(&args).Elem())
		require.Equal(t, wantErr != nil, written == nil)
		if written != nil {
			require.Equal(t, string(want), string(written))
		}
		encoded, err := encodeArgs("test.Written", args)
		switch {
		case wantErr != nil:
			require.ErrorIs(t, err, ErrInvalid)
			require.ErrorContains(t, err, wantErr.Error())
		case replacedText(want):
			require.ErrorIs(t, err, ErrInvalid)
		default:
			require.NoError(t, err)
			require.Equal(t, string(want), string(encoded))
		}
	})
}

func TestArgumentsThatMayHoldMoreAreLeftToEncodingJSON(t *testing.T) {
	t.Parallel()
	for name, args := range map[string]any{
		"float":        struct{ A float64 }{},
		"bytes":        struct{ A []byte }{},
		"slice":        struct{ A []string }{},
		"map":          struct{ A map[string]int }{},
		"struct":       struct{ A struct{ B int } }{},
		"pointer":      struct{ A *int }{},
		"text pointer": struct{ A *netip.Addr }{},
		"interface":    struct{ A any }{},
		"text or nil": struct {
			A interface{ MarshalText() ([]byte, error) }
		}{},
		"own JSON": struct{ A flag }{},
		"time":     struct{ A time.Time }{},
		"number":   struct{ A json.Number }{},
		"raw":      struct{ A json.RawMessage }{},
		"big":      struct{ A big.Int }{},
		"omitempty": struct {
			A int `json:"a,omitempty"`
		}{},
		"in quotes": struct {
			A int `json:"a,string"`
		}{},
		"left out": struct {
			A int `json:"-"`
		}{},
		"odd name": struct {
			A int `json:"<a>"`
		}{},
		"unexported":    struct{ a int }{},
		"embedded":      struct{ pair }{},
		"itself text":   shout(""),
		"a struct text": pair{},
		"no struct":     7,
	} {
		require.Nil(t, newArgsWriter(reflect.TypeOf(args)), name)
	}
	number := reflect.StructField{Name: "A", Type: reflect.TypeFor[int](), Tag: `json:"a"`}
	for _, odd := range []string{`a'`, "a`", "a\x7f"} {
		named := number
		named.Tag = reflect.StructTag("json:" + strconv.Quote(odd))
		require.Nil(t, newArgsWriter(reflect.StructOf([]reflect.StructField{named})), "encoding/json takes no such name: %q", odd)
	}
	again := number
	again.Name = "B"
	require.NotNil(t, newArgsWriter(reflect.StructOf([]reflect.StructField{number})))
	require.Nil(t, newArgsWriter(reflect.StructOf([]reflect.StructField{number, again})), "one name for two")
	require.NotNil(t, newArgsWriter(reflect.TypeFor[struct{}]()))
	none, err := encodeArgs("test.None", struct{}{})
	require.NoError(t, err)
	require.Equal(t, "{}", string(none))
}

// counted tells how often it was written.
type counted int

func (c *counted) MarshalText() ([]byte, error) {
	*c++
	return []byte{'0' + byte(*c)}, nil
}

func TestAnArgumentIsWrittenOnceBesideATextThatNeedsEscapes(t *testing.T) {
	t.Parallel()
	encoded, err := encodeArgs("test.Counted", struct {
		Times counted `json:"times"`
		Text  string  `json:"text"`
	}{Text: "é<\n"})
	require.NoError(t, err)
	require.Equal(t, `{"times":"1","text":"é\u003c\n"}`, string(encoded))
}

func TestAnIDIsWrittenInItsCanonicalForm(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var id uuid.UUID
		copy(id[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
		require.Equal(t, "x"+id.String(), string(appendUUID([]byte("x"), &id)))
	})
}
