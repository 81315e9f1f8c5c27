package gen

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const typedTasks = `package tasks

import (
	"context"

	"github.com/google/uuid"
)

type Gateway interface{ Collect() }

type Clock interface{ Now() int }

//smallage:task
func Reindex(ctx context.Context, docID uuid.UUID) error { return nil }

//smallage:task dedup="charge:{invoiceID}" inject=gateway,clock
func Charge(ctx context.Context, gateway Gateway, clock Clock, invoiceID uuid.UUID, cents int64) ([]byte, error) {
	return nil, nil
}
`

const typedCaller = `package caller

import (
	"context"
	"time"

	"example.com/typed/tasks"
	"github.com/google/uuid"
	smallage "github.com/smallage/smallage/runtime"
)

var (
	ctx     context.Context
	q       smallage.Enqueuer
	r       smallage.Results
	docID   uuid.UUID
	id      smallage.JobID
	gateway tasks.Gateway
	clock   tasks.Clock
)

func call() {
	%s
}

var _ = time.Second
`

// TestCompilerRefuses shows, for every mistake that must not compile, what the compiler says of it, and that the line
// beside it without the mistake compiles.
func TestCompilerRefuses(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, "example.com/typed")
	w.write("tasks/tasks.go", typedTasks)
	out, err := Generate(context.Background(), Options{Dir: w.dir, Patterns: []string{"./tasks"}, Env: w.env})
	require.NoError(t, err)
	require.Empty(t, out.Diagnostics)
	_, err = out.Write()
	require.NoError(t, err)

	cases := []struct{ name, right, wrong, message string }{
		{"argument type", `tasks.ReindexEnqueue(ctx, q, docID)`, `tasks.ReindexEnqueue(ctx, q, "1")`, `cannot use "1"`},
		{"argument order", `tasks.ChargeEnqueue(ctx, q, docID, 1)`, `tasks.ChargeEnqueue(ctx, q, 1, docID)`, `cannot use 1`},
		{"missing argument", `tasks.ChargeEnqueue(ctx, q, docID, 1)`, `tasks.ChargeEnqueue(ctx, q, docID)`, `not enough arguments`},
		{"surplus argument", `tasks.ReindexEnqueue(ctx, q, docID)`, `tasks.ReindexEnqueue(ctx, q, docID, 1)`, `cannot use 1`},
		{"job id as an argument", `tasks.ReindexEnqueue(ctx, q, docID)`, `tasks.ReindexEnqueue(ctx, q, id)`, `cannot use id`},
		{"option of another task", `tasks.ReindexEnqueue(ctx, q, docID, tasks.ReindexWith.Queue("a"))`, `tasks.ReindexEnqueue(ctx, q, docID, tasks.ChargeWith.Queue("a"))`, `cannot use tasks.ChargeWith.Queue("a")`},
		{"option converted", `_ = tasks.ReindexOption(tasks.ReindexWith.NoDedup())`, `_ = tasks.ReindexOption(tasks.ChargeWith.NoDedup())`, `cannot convert tasks.ChargeWith.NoDedup()`},
		{"builder converted", `_ = smallage.With[tasks.ReindexArgs](tasks.ReindexWith)`, `_ = smallage.With[tasks.ReindexArgs](tasks.ChargeWith)`, `cannot convert tasks.ChargeWith`},
		{"option of nothing", `tasks.ReindexEnqueue(ctx, q, docID, tasks.ReindexOption{})`, `tasks.ReindexEnqueue(ctx, q, docID, struct{}{})`, `cannot use struct{}{}`},
		{"missing dependency", `tasks.Dispatch(clock, gateway)`, `tasks.Dispatch(clock)`, `not enough arguments`},
		{"swapped dependencies", `tasks.Dispatch(clock, gateway)`, `tasks.Dispatch(gateway, clock)`, `cannot use gateway`},
		{"document as a job", `tasks.ChargeLookup(ctx, r, id)`, `tasks.ChargeLookup(ctx, r, docID)`, `cannot use docID`},
		{"document as a job to wait for", `tasks.ChargeWait(ctx, r, id, time.Second)`, `tasks.ChargeWait(ctx, r, docID, time.Second)`, `cannot use docID`},
		{"document as an id", `_ = tasks.ReindexWith.ID(id)`, `_ = tasks.ReindexWith.ID(docID)`, `cannot use docID`},
		{"document converted", `_ = smallage.JobID(id)`, `_ = smallage.JobID(docID)`, `cannot convert docID`},
		{"value of a task without one", `tasks.ChargeLookup(ctx, r, id)`, `tasks.ReindexLookup(ctx, r, id)`, `undefined: tasks.ReindexLookup`},
		{"key of other values", `_ = tasks.ChargeDedupKey(docID)`, `_ = tasks.ChargeDedupKey(1)`, `cannot use 1`},
	}
	const line = 23 // of the call in typedCaller
	var folders []string
	for i, c := range cases {
		w.write(fmt.Sprintf("right%d/caller.go", i), fmt.Sprintf(typedCaller, c.right))
		w.write(fmt.Sprintf("wrong%d/caller.go", i), fmt.Sprintf(typedCaller, c.wrong))
		folders = append(folders, fmt.Sprintf("./right%d", i))
	}
	w.run("go", append([]string{"build"}, folders...)...)
	said, err := w.try("go", "build", "./...")
	require.Error(t, err)
	for i, c := range cases {
		position := fmt.Sprintf("wrong%d/caller.go:%d:", i, line)
		var found []string
		for text := range strings.Lines(said) {
			if strings.HasPrefix(text, position) {
				found = append(found, text)
			}
		}
		require.NotEmpty(t, found, "%s: no error at %s in\n%s", c.name, position, said)
		require.Contains(t, found[0], c.message, c.name)
	}
}

// TestStaleFileDoesNotCompile shows that a generated file that is older than its task is found by the compiler, with the
// task's name.
func TestStaleFileDoesNotCompile(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, "example.com/stale")
	w.write("tasks/tasks.go", typedTasks)
	out, err := Generate(context.Background(), Options{Dir: w.dir, Patterns: []string{"./tasks"}, Env: w.env})
	require.NoError(t, err)
	_, err = out.Write()
	require.NoError(t, err)
	for old, replacement := range map[string]string{
		"Reindex(ctx context.Context, docID uuid.UUID) error": "Reindex(ctx context.Context, docID uuid.UUID) ([]byte, error)",
		"gateway Gateway, clock Clock, ":                      "clock Clock, gateway Gateway, ",
		"cents int64":                                         "cents int32",
		"func Charge(":                                        "func Collect(",
	} {
		w.write("tasks/tasks.go", strings.Replace(typedTasks, old, replacement, 1))
		said, err := w.try("go", "build", "./tasks")
		require.Error(t, err, replacement)
		require.Regexp(t, `smallage_gen\.go:\d+:\d+: .*(Reindex|Charge)`, said)
	}
}
