package gen

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var (
	signatureCount = flag.Int("signatures", 60, "how many random signatures the round trip compiles")
	signatureSeed  = flag.Int("signatures.seed", 1, "the first seed of the random signatures")
)

// TestRoundTrip makes tasks with random signatures over the supported types, generates their code, and has a program
// enqueue random values: each handler must receive exactly what its caller passed. All signatures share one program,
// because compiling is what costs.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, "example.com/roundtrip")
	var tasks, checks strings.Builder
	signatures := rapid.Custom(drawSignature)
	for i := range *signatureCount {
		s := signatures.Example(*signatureSeed + i)
		name := fmt.Sprintf("Task%d", i)
		declared, passed := make([]string, len(s.types)), make([]string, len(s.types))
		for j, typ := range s.types {
			declared[j], passed[j] = s.names[j]+" "+typ, s.names[j]
		}
		fmt.Fprintf(&tasks, "//smallage:task\nfunc %s(ctx context.Context, %s) error {\n\tGot = []any{%s}\n\treturn nil\n}\n\n",
			name, strings.Join(declared, ", "), strings.Join(passed, ", "))
		fmt.Fprintf(&checks, "\tt.Run(%q, func(t *testing.T) { check(t, tasks.%sEnqueue) })\n", name+" "+strings.Join(s.types, ","), name)
	}
	w.write("tasks/types.go", roundTripTypes)
	w.write("tasks/tasks.go", "package tasks\n\nimport (\n\t\"context\"\n\t\"encoding/json\"\n\t\"math/big\"\n\t\"net/netip\"\n\t\"time\"\n\n\t\"github.com/google/uuid\"\n)\n\n"+
		"var _ json.RawMessage\nvar _ big.Int\nvar _ netip.Addr\nvar _ time.Time\nvar _ uuid.UUID\n\n// Got is what the last handler received.\nvar Got []any\n\n"+tasks.String())
	w.write("driver/driver_test.go", roundTripDriver+"\nfunc TestAll(t *testing.T) {\n"+checks.String()+"}\n")

	out, err := Generate(context.Background(), Options{Dir: w.dir, Patterns: []string{"./tasks"}, Env: w.env})
	require.NoError(t, err)
	for _, d := range out.Diagnostics {
		t.Errorf("refused: %s", d)
	}
	require.Empty(t, out.Diagnostics)
	_, err = out.Write()
	require.NoError(t, err)
	w.run("go", "test", "-vet=off", "./driver")
}

type signature struct{ names, types []string }

// drawSignature makes up to five parameters, some of them with names that mean something elsewhere.
func drawSignature(t *rapid.T) signature {
	names := []string{"id", "ctx2", "q", "opts", "string", "context", "time", "uuid", "json", "error", "a", "été", "_x", "type_", "smallage", "len"}
	chosen := rapid.Permutation(names).Draw(t, "names")
	var s signature
	for i := range rapid.IntRange(1, 5).Draw(t, "count") {
		s.names = append(s.names, chosen[i])
		s.types = append(s.types, drawType(t, 3, true))
	}
	if rapid.IntRange(0, 4).Draw(t, "variadic") == 0 {
		last := len(s.types) - 1
		s.types[last] = "..." + drawType(t, 2, true)
	}
	return s
}

// drawType makes the text of a type. What has no address cannot be of a type whose methods have pointer receivers.
func drawType(t *rapid.T, depth int, addressable bool) string {
	leaves := []string{
		"bool", "string", "int", "int8", "int16", "int32", "int64", "uint", "uint8", "uint16", "uint32", "uint64", "float32", "float64",
		"byte", "rune", "[]byte", "time.Time", "time.Duration", "uuid.UUID", "netip.Addr", "*big.Int", "json.RawMessage",
		"Text", "Number", "Bytes", "Money", "*Node", "Color", "Alias", "Embedding",
	}
	if addressable {
		leaves = append(leaves, "big.Int", "Blob")
	}
	if depth == 0 {
		return rapid.SampledFrom(leaves).Draw(t, "leaf")
	}
	inner := func(addressable bool) string { return drawType(t, depth-1, addressable) }
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 0:
		return "[]" + inner(true)
	case 1:
		return fmt.Sprintf("[%d]%s", rapid.IntRange(0, 3).Draw(t, "length"), inner(addressable))
	case 2, 3:
		key := rapid.SampledFrom([]string{"string", "int", "int64", "uint8", "Text", "Number", "uuid.UUID", "netip.Addr"}).Draw(t, "key")
		return "map[" + key + "]" + inner(false)
	case 4:
		return "*" + rapid.SampledFrom([]string{"int", "string", "Money", "uuid.UUID", "time.Time", "Blob", "Color", "[2]bool", "Page[int]"}).Draw(t, "pointed")
	case 5:
		zero := inner(addressable)
		if zero == "*time.Time" {
			zero = "time.Time" // omitzero leaves a pointer out for what it points to
		}
		return fmt.Sprintf("struct{ A %s; B %s `json:\"b\"`; C %s `json:\",omitzero\"` }", inner(addressable), inner(addressable), zero)
	case 6:
		return "Page[" + inner(true) + "]"
	default:
		return rapid.SampledFrom(leaves).Draw(t, "leaf")
	}
}

const roundTripTypes = `package tasks

import (
	"encoding/hex"
	"encoding/json"

	"github.com/google/uuid"
)

type (
	Text   string
	Number int64
	Bytes  []byte
	Alias  = map[string][]uuid.UUID

	Money struct {
		Cents    int64  ` + "`json:\"cents,string\"`" + `
		Currency string ` + "`json:\"currency,omitempty\"`" + `
	}

	Node struct {
		Value    uint64
		Children []*Node
		Next     *Node ` + "`json:\",omitempty\"`" + `
	}

	Page[T any] struct {
		Items []T
		Total int32
	}

	Embedding struct {
		Money
		*Node
		Name string
	}

	Color struct{ RGB [3]byte }

	Blob struct{ Data string }
)

func (c Color) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(c.RGB[:])), nil }

func (c *Color) UnmarshalText(text []byte) error {
	data, err := hex.DecodeString(string(text))
	copy(c.RGB[:], data)
	return err
}

func (b *Blob) MarshalJSON() ([]byte, error) { return json.Marshal([]string{b.Data}) }

func (b *Blob) UnmarshalJSON(data []byte) error {
	var list []string
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	b.Data = list[0]
	return nil
}
`

const roundTripDriver = `package driver

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"math/big"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"example.com/roundtrip/tasks"
	"github.com/google/uuid"
	smallage "github.com/smallage/smallage/runtime"
	"pgregory.net/rapid"
)

func check(t *testing.T, enqueue any) {
	f := reflect.ValueOf(enqueue)
	table := tasks.Dispatch()
	rapid.Check(t, func(t *rapid.T) {
		var q smallage.CollectingEnqueuer
		in := []reflect.Value{reflect.ValueOf(context.Background()), reflect.ValueOf(&q)}
		for i := 2; i < f.Type().NumIn()-1; i++ {
			v := reflect.New(f.Type().In(i)).Elem()
			fill(t, v, 4)
			in = append(in, v)
		}
		out := f.Call(in)
		if err, _ := out[1].Interface().(error); err != nil {
			t.Fatalf("enqueue: %v", err)
		}
		job := q.Jobs()[0]
		if _, err := table.Call(context.Background(), job); err != nil {
			t.Fatalf("call: %v\n%s", err, job.Args)
		}
		for i, passed := range in[2:] {
			if got := reflect.ValueOf(tasks.Got[i]); !equal(passed, got) {
				t.Fatalf("parameter %d: passed %#v, got %#v\n%s", i, passed, got, job.Args)
			}
		}
	})
}

func fill(t *rapid.T, v reflect.Value, depth int) {
	switch p := v.Addr().Interface().(type) {
	case *time.Time:
		*p = time.Unix(rapid.Int64Range(-1e10, 1e11).Draw(t, "s"), rapid.Int64Range(0, 999999999).Draw(t, "ns")).UTC()
		return
	case *big.Int:
		p.SetBytes(rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "big"))
		if rapid.Bool().Draw(t, "negative") {
			p.Neg(p)
		}
		return
	case *uuid.UUID:
		copy(p[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "uuid"))
		return
	case *netip.Addr:
		*p, _ = netip.AddrFromSlice(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "addr"))
		return
	case *json.RawMessage:
		*p = json.RawMessage(rapid.SampledFrom([]string{"null", "[]", "{\"a\":[1,2.50]}", "\"x\"", "9007199254740993"}).Draw(t, "raw"))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		limit := int64(math.MaxInt64) >> (64 - v.Type().Bits())
		v.SetInt(rapid.OneOf(rapid.Int64Range(-limit-1, limit), rapid.SampledFrom([]int64{-limit - 1, limit, 0})).Draw(t, "int"))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		limit := uint64(math.MaxUint64) >> (64 - v.Type().Bits())
		v.SetUint(rapid.OneOf(rapid.Uint64Range(0, limit), rapid.SampledFrom([]uint64{limit, 0})).Draw(t, "uint"))
	case reflect.Float32:
		v.SetFloat(float64(rapid.Float32().Filter(func(f float32) bool { return !math.IsInf(float64(f), 0) }).Draw(t, "float")))
	case reflect.Float64:
		v.SetFloat(rapid.Float64().Filter(func(f float64) bool { return !math.IsInf(f, 0) }).Draw(t, "float"))
	case reflect.String:
		v.SetString(rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "<&>\u2028", "\\ufffd", "\ufffd", "{\"a\":1}"})).Draw(t, "string"))
	case reflect.Array:
		for i := range v.Len() {
			fill(t, v.Index(i), depth-1)
		}
	case reflect.Slice:
		n := rapid.IntRange(-1, 3).Draw(t, "length")
		if n < 0 || depth <= 0 {
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(t, v.Index(i), depth-1)
		}
	case reflect.Map:
		n := rapid.IntRange(-1, 3).Draw(t, "size")
		if n < 0 || depth <= 0 {
			return
		}
		v.Set(reflect.MakeMap(v.Type()))
		for range n {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(t, key, depth-1)
			fill(t, value, depth-1)
			v.SetMapIndex(key, value)
		}
	case reflect.Pointer:
		if depth > 0 && rapid.Bool().Draw(t, "set") {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, v.Elem(), depth-1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), depth-1)
		}
	default:
		t.Fatalf("no values of type %s", v.Type())
	}
}

// equal is reflect.DeepEqual, but for instants and big numbers, which have several forms of one value.
func equal(a, b reflect.Value) bool {
	if a.Type() != b.Type() {
		return false
	}
	switch x := a.Interface().(type) {
	case time.Time:
		return x.Equal(b.Interface().(time.Time))
	case big.Int:
		y := b.Interface().(big.Int)
		return x.Cmp(&y) == 0
	case json.RawMessage:
		return bytes.Equal(x, b.Interface().(json.RawMessage))
	case netip.Addr, uuid.UUID:
		return a.Interface() == b.Interface()
	}
	switch a.Kind() {
	case reflect.Array, reflect.Slice:
		if a.Len() != b.Len() || a.Kind() == reflect.Slice && a.IsNil() != b.IsNil() {
			return false
		}
		for i := range a.Len() {
			if !equal(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Map:
		if a.Len() != b.Len() || a.IsNil() != b.IsNil() {
			return false
		}
		for _, key := range a.MapKeys() {
			if value := b.MapIndex(key); !value.IsValid() || !equal(a.MapIndex(key), value) {
				return false
			}
		}
		return true
	case reflect.Pointer:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() == b.IsNil()
		}
		return equal(a.Elem(), b.Elem())
	case reflect.Struct:
		for i := range a.NumField() {
			if !equal(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	}
	return a.Interface() == b.Interface()
}
`
