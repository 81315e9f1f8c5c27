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

var structCount = flag.Int("structs", 150, "how many random structs with tags and embedded types the round trip tries")

// TestWhatIsAcceptedArrives tries random structs with the options of json tags and with embedded types, of which many
// lose something. Those that the generator accepts must arrive as they were sent, whatever they hold.
func TestWhatIsAcceptedArrives(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, "example.com/roundtrip")
	structs := rapid.Custom(drawStruct)
	declared := make([]string, *structCount)
	for i := range declared {
		declared[i] = structs.Example(*signatureSeed + i)
	}
	// Every struct is declared in a file of its own, so that a diagnostic tells which it is about.
	for i, s := range declared {
		w.write(fmt.Sprintf("tasks/task%d.go", i), taggedTask(i, s))
	}
	w.write("tasks/types.go", roundTripTypes)
	w.write("tasks/tagged.go", taggedTypes)
	options := Options{Dir: w.dir, Patterns: []string{"./tasks"}, Env: w.env}
	out, err := Generate(context.Background(), options)
	require.NoError(t, err)
	refused := map[string]string{}
	for _, d := range out.Diagnostics {
		require.Equal(t, lossyType, d.Kind, "%s", d)
		refused[d.Relative(w.dir)[:strings.Index(d.Relative(w.dir), ":")]] = d.Text
	}
	var checks strings.Builder
	accepted := 0
	for i, s := range declared {
		name := fmt.Sprintf("tasks/task%d.go", i)
		if text, lossy := refused[name]; lossy {
			t.Logf("refused: %s: %s", s, text)
			w.write(name, "package tasks\n")
			continue
		}
		accepted++
		fmt.Fprintf(&checks, "\tt.Run(%q, func(t *testing.T) { check(t, tasks.Task%dEnqueue) })\n", s, i)
	}
	require.Greater(t, accepted, *structCount/5)
	require.Greater(t, len(refused), *structCount/5)
	out, err = Generate(context.Background(), options)
	require.NoError(t, err)
	require.Empty(t, out.Diagnostics)
	_, err = out.Write()
	require.NoError(t, err)
	w.write("driver/driver_test.go", roundTripDriver+"\nfunc TestAll(t *testing.T) {\n"+checks.String()+"}\n")
	w.run("go", "test", "-vet=off", "./driver")
}

func taggedTask(i int, fields string) string {
	var imports strings.Builder
	for _, path := range []string{"context", "encoding/json", "math/big", "net/netip", "time", "github.com/google/uuid"} {
		if path == "context" || strings.Contains(fields, path[strings.LastIndex(path, "/")+1:]+".") {
			fmt.Fprintf(&imports, "\t%q\n", path)
		}
	}
	return fmt.Sprintf("package tasks\n\nimport (\n%s)\n\n//smallage:task\nfunc Task%d(ctx context.Context, v %s) error {\n\tGot = []any{v}\n\treturn nil\n}\n",
		imports.String(), i, fields)
}

// drawStruct makes a struct of up to three fields.
func drawStruct(t *rapid.T) string {
	types := []string{
		"int", "string", "bool", "float64", "*int", "*string", "[]int", "map[string]int", "[]byte", "[2]int", "[0]int", "struct{}", "[]string",
		"time.Time", "*time.Time", "time.Duration", "json.RawMessage", "uuid.UUID", "*uuid.UUID", "netip.Addr", "big.Int", "*big.Int",
		"Text", "Number", "Bytes", "Money", "*Money", "Color", "*Color", "[]Color", "Blob", "*Blob", "Near", "*Near", "Set", "*Set", "List",
		"map[time.Time]int", "map[Color]Near", "map[string]Set", "Optional", "*Optional", "[]Optional", "Stamp", "*Stamp", "**int", "*Set",
	}
	tags := []string{"", "", ",omitempty", ",omitempty", ",omitzero", ",omitzero", ",string", ",omitempty,omitzero", ",omitempty,string"}
	embedded := []string{"Money", "*Money", "Optional", "*Optional", "*Node", "Near", "*Near", "Text", "List", "*Text", "Whole", "*Whole", "Stamp"}
	var b strings.Builder
	b.WriteString("struct{ ")
	if rapid.IntRange(0, 2).Draw(t, "embeds") == 0 {
		b.WriteString(rapid.SampledFrom(embedded).Draw(t, "embedded") + tagOf(rapid.SampledFrom(append(tags, "e", "e,omitempty")).Draw(t, "tag")) + "; ")
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "fields") {
		fmt.Fprintf(&b, "F%d %s%s; ", i, rapid.SampledFrom(types).Draw(t, "type"), tagOf(rapid.SampledFrom(tags).Draw(t, "tag")))
	}
	return b.String() + "}"
}

func tagOf(options string) string {
	if options == "" {
		return ""
	}
	return fmt.Sprintf(" `json:%q`", options)
}

const taggedTypes = `package tasks

import (
	"encoding/json"
	"time"
)

// Got is what the last handler received.
var Got []any

type (
	// Near says that it is zero of more than its zero value.
	Near struct {
		A int
		B string
	}

	// Set brings its own encoding.
	Set map[string]int

	// List brings its own encoding.
	List []int

	// Optional may have nothing in JSON.
	Optional struct {
		X int    ` + "`json:\",omitempty\"`" + `
		Y *int   ` + "`json:\",omitempty\"`" + `
		Z string ` + "`json:\",omitzero\"`" + `
	}

	// Whole embeds only what may be left out.
	Whole struct {
		*Money
		W [2]bool ` + "`json:\",omitzero\"`" + `
	}

	// Stamp has the methods of an instant.
	Stamp struct{ time.Time }
)

func (n Near) IsZero() bool { return n.A%2 == 0 }

func (s Set) MarshalJSON() ([]byte, error) { return json.Marshal(map[string]int(s)) }

func (s *Set) UnmarshalJSON(data []byte) error { return json.Unmarshal(data, (*map[string]int)(s)) }

func (l List) MarshalJSON() ([]byte, error) { return json.Marshal([]int(l)) }

func (l *List) UnmarshalJSON(data []byte) error { return json.Unmarshal(data, (*[]int)(l)) }
`
