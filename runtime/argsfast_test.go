package smallage

import (
	"encoding/json"
	"math/big"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// plainArgs has a parameter of every kind that decodePlain treats in a way of its own, and some that it leaves alone.
type plainArgs struct {
	Text   string            `json:"text"`
	On     bool              `json:"on"`
	Small  int8              `json:"small"`
	Large  int64             `json:"large"`
	Count  uint16            `json:"count"`
	ID     uuid.UUID         `json:"id"`
	Addr   netip.Addr        `json:"addr"`
	At     time.Time         `json:"at"`
	Span   time.Duration     `json:"span"`
	Share  float64           `json:"share"`
	Names  []string          `json:"names"`
	ByName map[string]int    `json:"byName"`
	Inner  struct{ A int }   `json:"inner"`
	Maybe  *int              `json:"maybe"`
	Bytes  []byte            `json:"bytes"`
	Raw    json.RawMessage   `json:"raw"`
	Number json.Number       `json:"number"`
	Big    *big.Int          `json:"big"`
	Labels map[uuid.UUID]int `json:"labels"`
}

// withoutPlain decodes as encoding/json alone does.
func withoutPlain(shape argsShape, data []byte) (plainArgs, error) {
	var args plainArgs
	shape.plain = false
	err := shape.decode(data, &args)
	return args, err
}

func requireSameAsJSON(t require.TestingT, data []byte) {
	shape := newArgsShape(reflect.TypeFor[plainArgs](), nil)
	want, wantErr := withoutPlain(shape, data)
	var got plainArgs
	err := shape.decode(data, &got)
	if wantErr != nil {
		require.EqualError(t, err, wantErr.Error(), "%s", data)
		return
	}
	require.NoError(t, err, "%s", data)
	require.Equal(t, want, got, "%s", data)
}

func drawPlainArgs(t *rapid.T) plainArgs {
	args := plainArgs{
		Text: rapid.String().Draw(t, "text"), On: rapid.Bool().Draw(t, "on"), Small: rapid.Int8().Draw(t, "small"),
		Large: rapid.Int64().Draw(t, "large"), Count: rapid.Uint16().Draw(t, "count"),
		At:   time.UnixMilli(rapid.Int64Range(0, 1<<42).Draw(t, "at")).UTC(),
		Span: time.Duration(rapid.Int64().Draw(t, "span")), Share: rapid.Float64Range(-1e9, 1e9).Draw(t, "share"),
		Names: rapid.SliceOf(rapid.String()).Draw(t, "names"), ByName: rapid.MapOf(rapid.String(), rapid.Int()).Draw(t, "byName"),
		Bytes: rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"), Raw: json.RawMessage(`{"a":[1,"]}"]}`), Number: "12.5", Big: big.NewInt(1),
	}
	copy(args.ID[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
	args.Addr = netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "addr")))
	args.Inner.A = rapid.Int().Draw(t, "inner")
	if rapid.Bool().Draw(t, "some") {
		n := rapid.Int().Draw(t, "maybe")
		args.Maybe = &n
	}
	return args
}

func TestArgumentsAreReadAsEncodingJSONReadsThem(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		data, err := json.Marshal(drawPlainArgs(t))
		require.NoError(t, err)
		requireSameAsJSON(t, data)
		for range 5 { // and with one byte changed, left out or put in
			at, c := rapid.IntRange(0, len(data)-1).Draw(t, "at"), rapid.SampledFrom([]byte(`"\{}[],:0123-+.eEtfn `+"\x00\xff\n")).Draw(t, "c")
			changed := append([]byte(nil), data...)
			switch rapid.IntRange(0, 2).Draw(t, "how") {
			case 0:
				changed[at] = c
			case 1:
				changed = append(changed[:at], changed[at+1:]...)
			default:
				changed = append(changed[:at], append([]byte{c}, data[at:]...)...)
			}
			requireSameAsJSON(t, changed)
		}
	})
}

func TestThePlainFormIsReadWithoutEncodingJSON(t *testing.T) {
	t.Parallel()
	type args struct {
		ID    uuid.UUID `json:"id"`
		Name  string    `json:"name"`
		Count int       `json:"count"`
		On    bool      `json:"on"`
	}
	shape := newArgsShape(reflect.TypeFor[args](), nil)
	want := args{uuid.New(), "é", -7, true}
	data, err := json.Marshal(want)
	require.NoError(t, err)
	var got args
	require.True(t, shape.decodePlain(data, reflect.ValueOf(&got).Elem()))
	require.Equal(t, want, got)
	for _, other := range []string{
		`{ "id":"` + want.ID.String() + `","name":"","count":1,"on":true}`,
		`{"name":"","id":"` + want.ID.String() + `","count":1,"on":true}`,
		`{"id":"` + want.ID.String() + `","name":"\n","count":1,"on":true}`,
		`{"id":"` + want.ID.String() + `","name":"","count":01,"on":true}`,
		`{"id":"` + want.ID.String() + `","name":"","count":1.0,"on":true}`,
		`{"id":"` + want.ID.String() + `","name":"","count":1,"on":true,"more":1}`,
		`{"id":"` + want.ID.String() + `","name":"","count":1}`,
		`{"id":"no id","name":"","count":1,"on":true}`,
		`null`, `{}`, ``, `{`,
	} {
		require.False(t, shape.decodePlain([]byte(other), reflect.ValueOf(&got).Elem()), other)
	}
}

func FuzzArgumentsAreReadAsEncodingJSONReadsThem(f *testing.F) {
	data, err := json.Marshal(plainArgs{Addr: netip.MustParseAddr("::1"), Raw: json.RawMessage(`[1]`), Number: "1", Big: big.NewInt(2)})
	require.NoError(f, err)
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) { requireSameAsJSON(t, data) })
}
