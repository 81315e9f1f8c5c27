package gen

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// meantAsDirective are lines that somebody wrote for a directive, and what they should have been told.
var meantAsDirective = []struct{ line, shown, target string }{
	{"// smallage:task", "// smallage:task", "task"},
	{"//smallage task", "//smallage task", "task"},
	{"//smallage task queue=a", "//smallage task", "task"},
	{"// smallage task queue=a", "// smallage task", "task"},
	{"//smallage: task", "//smallage: task", "task"},
	{"// smallage: task queue=a", "// smallage: task", "task"},
	{"// smallage: task queue = a", "// smallage: task", "task"},
	{"// smallage:task queue search", "// smallage:task", "task"},
	{"// smallage:task, queue=search", "// smallage:task", "task"},
	{"// smallage:task - reindexes", "// smallage:task", "task"},
	{"// smallage:task — reindexes the documents", "// smallage:task", "task"},
	{"// smallage:task // reindexes", "// smallage:task", "task"},
	{"//smallagegen:task", "//smallagegen:task", "task"},
	{"//smallage-gen:task", "//smallage-gen:task", "task"},
	{"//small-age:task", "//small-age:task", "task"},
	{"//smallagetask", "//smallagetask", "task"},
	{"// SmallageTask queue=a", "// SmallageTask", "task"},
	{"//smalage:task reindexes", "//smalage:task", "task"},
	{"//smalage:tasc", "//smalage:tasc", "task"},
	{"//Smallage:Task with words behind it", "//Smallage:Task", "task"},
	{"//smalage:worker", "//smalage:worker", ""},
	{"//smalage:", "//smalage:", ""},
	{"//smallage queue=a", "//smallage queue", "task"},
	{"// smallage: result-ttl=1h", "// smallage: result", "task"},
	{"//smallage client=q", "//smallage client", "package"},
	{"// smallage:package client=q", "// smallage:package", "package"},
	{"// +smallage:task", "// +smallage:task", "task"},
	{"//+smallage:task", "//+smallage:task", "task"},
	{"// +smallage:task reindexes", "// +smallage:task", "task"},
	{"// +smallage:package client=q", "// +smallage:package", "package"},
	{"//@smallage:task", "//@smallage:task", "task"},
	{"// @smallage:task queue=a", "// @smallage:task", "task"},
	{"// @smallage task", "// @smallage task", "task"},
	{"// @Smallage.Task", "// @Smallage.Task", "task"},
	{"///smallage:task", "///smallage:task", "task"},
	{"/// smallage:task", "/// smallage:task", "task"},
	{"//!smallage:task", "//!smallage:task", "task"},
	{"//#smallage:task", "//#smallage:task", "task"},
	{"//-smallage:task", "//-smallage:task", "task"},
	{"//:smallage:task", "//:smallage:task", "task"},
	{"//smallage=task", "//smallage=task", "task"},
	{"//smallage;task", "//smallage;task", "task"},
	{"//smallage,task", "//smallage,task", "task"},
	{"//smallage.task", "//smallage.task", "task"},
	{"//smallage/task", "//smallage/task", "task"},
	{"//smallage_task", "//smallage_task", "task"},
	{"//smallage::task", "//smallage::task", "task"},
	{"//smallage：task", "//smallage：task", "task"},
	{"//ｓｍａｌｌａｇｅ:task", "//ｓｍａｌｌａｇｅ:task", "task"},
	{"//small\u200bage:task", "//small\u200bage:task", "task"},
	{"//smallage\u200b:task queue=a", "//smallage\u200b:task", "task"},
	{"//\u200bsmallage:task", "//\u200bsmallage:task", "task"},
	{"//\ufeffsmallage:task", "//\ufeffsmallage:task", "task"},
	{"//\u00a0smallage:task", "//\u00a0smallage:task", "task"},
	{"//sm\u0430llage:task", "//sm\u0430llage:task", "task"}, // a Cyrillic letter
	{"//go:smallage task", "//go:smallage task", "task"},
	{"//go:smallage:task queue=a", "//go:smallage:task", "task"},
	{"/*smallage:task*/", "/*smallage:task", "task"},
	{"/* smallage:task queue=a */", "/* smallage:task", "task"},
	{"/** smallage:task */", "/** smallage:task", "task"},
	{"//\tsmallage:task queue=a", "//\tsmallage:task", "task"},
}

// plainProse are lines that speak of Smallage, or of something else, and are no directives.
var plainProse = []string{
	"// smallage: task queue of our team is described in the wiki.",
	"// see //smallage:task in the docs",
	"// Annotate a function with //smallage:task queue=search.",
	"// //smallage:task queue=commented-out",
	"////smallage:task queue=commented-out",
	"//\t//smallage:task queue=search",
	"// smallage:task lines are described elsewhere.",
	"// smallage:task.",
	"// smallage:task, smallage:package and their keys",
	"// smallage:task: what makes a function a task",
	"// `smallage:task queue=a` sets the queue",
	"// \"smallage:task queue=a\" sets the queue",
	"// (smallage:task queue=a)",
	"// - smallage:task queue=a",
	"//   - smallage:task",
	"// * smallage:task",
	"// # smallage:task",
	"// smallage.task = 1",
	"// Smallage task",
	"// smallage tasks",
	"// Smallage, tasks and all",
	"// smallage task queues are nice",
	"// smallage-task queues",
	"// Smallage: tasks",
	"// smallage: a queue for Go.",
	"// smallage",
	"//smallage",
	"//smallages are plants.",
	"// smallagegen ./...",
	"// smallage_gen.go is written by smallagegen.",
	"//go:generate go tool smallagegen ./...",
	"// small:task force",
	"//small:task",
	"// passage:task one",
	"//village:task",
	"// TODO(smallage): task",
	"// smallage: package of our team",
	"// Package smallage: package of tasks",
	"// smallage/runtime",
	"// ---smallage:task---",
	"/* smallage:task is a directive. */",
	"/* Package smallage is. */",
	"//",
	"// ",
	"/**/",
	"//:",
}

func TestLinesMeantAsDirectivesAreToldFromProse(t *testing.T) {
	t.Parallel()
	for _, c := range meantAsDirective {
		l, ok := alike(c.line, byForm)
		require.True(t, ok, "passed over: %q", c.line)
		require.Equal(t, c.shown, l.shown, "%q", c.line)
		require.Equal(t, c.target, l.target, "%q", c.line)
	}
	for _, line := range plainProse {
		l, ok := alike(line, byForm)
		require.False(t, ok, "%q is taken for %+v", line, l)
		l, ok = behindAnother(line)
		require.False(t, ok, "%q is taken for %+v", line, l)
	}
}

func TestDirectivesBehindOtherToolsDirectivesAreFound(t *testing.T) {
	t.Parallel()
	for line, shown := range map[string]string{
		"//nolint:all //smallage:task":                  "//nolint:all //smallage:task",
		"//nolint:all // smallage:task queue=a":         "//nolint:all // smallage:task",
		"//nolint //smallage:task queue=a":              "//nolint //smallage:task",
		"//go:noinline //smallage:task":                 "//go:noinline //smallage:task",
		"//lint:ignore SA1 why //smalage:task":          "//lint:ignore SA1 why //smalage:task",
		"//export Do // it is C's //smallage:task":      "//export Do // it is C's //smallage:task",
		"//nolint:all // see http://x //@smallage:task": "//nolint:all // see http://x //@smallage:task",
	} {
		l, ok := behindAnother(line)
		require.True(t, ok, "passed over: %q", line)
		require.Equal(t, shown, l.shown)
		require.Equal(t, "task", l.target)
	}
	for _, line := range []string{
		"//nolint:all // see //smallage:task in the docs",
		"//nolint:all // smallage: task queue of our team",
		"//go:generate echo //smallage:task",
		"//go:generate go run ./cmd // smallage:task",
		"// nolint is explained at //smallage:task",
		"//nolintish //smallage:task",
	} {
		_, ok := behindAnother(line)
		require.False(t, ok, line)
	}
}

// FuzzLikeness: no line is too odd to be read, and what is shown of it is its beginning.
func FuzzLikeness(f *testing.F) {
	for _, c := range meantAsDirective {
		f.Add(c.line)
	}
	for _, line := range plainProse {
		f.Add(line)
	}
	f.Add("//\xff\xfesmallage:task")
	f.Add("//nolint:all //smallage：task\u200b queue=a")
	f.Fuzz(func(t *testing.T, line string) {
		for _, how := range []certainty{byForm, byWords, byPlace} {
			if l, ok := alike(line, how); ok {
				require.NotEmpty(t, l.shown)
				require.True(t, strings.HasPrefix(strings.TrimSpace(line), l.shown), "%q does not begin with %q", line, l.shown)
				require.Contains(t, append(directiveNames, ""), l.target)
			}
		}
		if l, ok := behindAnother(line); ok {
			require.Contains(t, line, l.shown)
		}
	})
}
