package outside_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// compile builds a package of this module whose files exist only here, by path and text, and returns what the compiler
// says, all of it.
func compile(t *testing.T, pkg string, files map[string]string) (messages string, ok bool) {
	t.Helper()
	var overlay struct{ Replace map[string]string }
	overlay.Replace = map[string]string{}
	dir := t.TempDir()
	for path, text := range files {
		real := filepath.Join(dir, filepath.FromSlash(path)) // the compiler's messages name this one
		require.NoError(t, os.MkdirAll(filepath.Dir(real), 0o700))
		require.NoError(t, os.WriteFile(real, []byte(text), 0o600))
		overlay.Replace[filepath.Join(repository(t), path)] = real
	}
	data, err := json.Marshal(overlay)
	require.NoError(t, err)
	list := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(list, data, 0o600))
	cmd := exec.CommandContext(t.Context(), "go", "build", "-gcflags=-e", "-overlay", list, "-o", os.DevNull, pkg)
	cmd.Dir = repository(t)
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

// application is a program whose body is one statement per function, so that each is refused by itself.
func application(statements []string) string {
	var b strings.Builder
	b.WriteString(`package main

import (
	"context"
	"time"

	"github.com/google/uuid"
	smallage "github.com/smallage/smallage/runtime"

	"github.com/smallage/smallage/examples/quickstart/tasks"
)

var (
	ctx     context.Context
	client  *smallage.Client
	q       smallage.CollectingEnqueuer
	id      smallage.JobID
	invoice uuid.UUID
	index   *tasks.Index
	ledger  *tasks.Ledger
	_       time.Duration
)

func main() {}

func use(...any) {}

`)
	for i, statement := range statements {
		fmt.Fprintf(&b, "func _() { %s } // statement %d\n", statement, i)
	}
	return b.String()
}

const applicationFile = "internal/outside/application/main.go"

func TestWrongUseDoesNotCompile(t *testing.T) {
	t.Parallel()
	cases := []struct{ statement, want string }{
		{`use(tasks.ChargeEnqueue(ctx, &q, "4711"))`, "cannot use \"4711\""},
		{`use(tasks.ReindexEnqueue(ctx, &q, invoice))`, "cannot use invoice"},
		{`use(tasks.ChargeEnqueue(ctx, &q))`, "not enough arguments in call to tasks.ChargeEnqueue"},
		{`use(tasks.ReindexEnqueue(ctx, &q, "a.txt", "b.txt"))`, "cannot use \"b.txt\""},
		{`use(tasks.ChargeEnqueue(ctx, &q, ledger, invoice))`, "cannot use ledger"},
		{`use(tasks.ChargeEnqueue(ctx, nil, invoice, tasks.ReindexWith.Delay(time.Second)))`, "cannot use tasks.ReindexWith.Delay"},
		{`use(tasks.ChargeOption(tasks.ReindexWith.Delay(time.Second)))`, "cannot convert"},
		{`use(smallage.With[tasks.ChargeArgs](tasks.ReindexWith))`, "cannot convert"},
		{`use(tasks.ChargeDedupKey("4711"))`, "cannot use \"4711\""},
		{`use(tasks.Dispatch())`, "not enough arguments in call to tasks.Dispatch"},
		{`use(tasks.Dispatch(index))`, "not enough arguments in call to tasks.Dispatch"},
		{`use(tasks.Dispatch(ledger, index))`, "cannot use ledger"},
		{`use(client.Wait(ctx, invoice, 0))`, "cannot use invoice"},
		{`use(client.Result(ctx, invoice))`, "cannot use invoice"},
		{`use(tasks.ChargeWait(ctx, client, invoice, time.Second))`, "cannot use invoice"},
		{`use(smallage.JobID(invoice))`, "cannot convert"},
		{`use(uuid.UUID(id))`, "cannot convert"},
		{`use(tasks.ChargeEnqueue(ctx, &q, id))`, "cannot use id"},
		{`use(tasks.RemindWait(ctx, client, id, time.Second))`, "undefined: tasks.RemindWait"},
		{`use(tasks.RemindDedupKey("a@example.com"))`, "undefined: tasks.RemindDedupKey"},
	}
	var statements []string
	for _, c := range cases {
		statements = append(statements, c.statement)
	}
	text := application(statements)
	messages, ok := compile(t, "./internal/outside/application", map[string]string{applicationFile: text})
	require.False(t, ok)

	lines := strings.Split(text, "\n")
	for i, c := range cases {
		line := 1
		for !strings.HasSuffix(lines[line-1], fmt.Sprintf("// statement %d", i)) {
			line++
		}
		refusals := 0
		for _, message := range strings.Split(messages, "\n") {
			if strings.Contains(message, fmt.Sprintf("main.go:%d:", line)) && strings.Contains(message, c.want) {
				refusals++
			}
		}
		require.Equal(t, 1, refusals, "%s\n%s", c.statement, messages)
	}
}

// The same program with right uses: what is refused above is refused for what is wrong with it.
func TestRightUseCompiles(t *testing.T) {
	t.Parallel()
	messages, ok := compile(t, "./internal/outside/application", map[string]string{applicationFile: application([]string{
		`use(tasks.ChargeEnqueue(ctx, &q, invoice, tasks.ChargeWith.Delay(time.Second), tasks.ChargeWith.NoDedup()))`,
		`var opt tasks.ChargeOption = tasks.ChargeWith.ResultTTL(time.Minute); use(opt)`,
		`use(tasks.Dispatch(index, ledger))`,
		`use(client.Wait(ctx, id, 0))`,
		`use(tasks.ChargeWait(ctx, client, id, time.Second))`,
		`use(tasks.ChargeDedupKey(invoice))`,
	})})
	require.True(t, ok, messages)
}

// A generated file that no longer fits its functions says whose it is instead of calling them wrongly.
func TestStaleGeneratedFileDoesNotCompile(t *testing.T) {
	t.Parallel()
	const source = "examples/quickstart/tasks/tasks.go"
	text, err := os.ReadFile(filepath.Join(repository(t), source))
	require.NoError(t, err)
	for old, changed := range map[string]string{
		"address string) error": "address, subject string) error",
		"func Remind(":          "func Admonish(",
		"index *Index, path string) ([]byte, error) {\n": "index *Index, path []byte) ([]byte, error) {\n\tpath := string(path)\n",
	} {
		require.Contains(t, string(text), old)
		stale := strings.Replace(string(text), old, changed, 1)
		messages, ok := compile(t, "./examples/quickstart/tasks", map[string]string{source: stale})
		require.False(t, ok)
		require.Regexp(t, `smallage_gen\.go:\d+:\d+: .*(Remind|Reindex)`, messages)
	}
}
