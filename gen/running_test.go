package gen

import (
	"fmt"
	"go/ast"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// driver is a program's common part: it enqueues through a wrapper with arguments made by reflection, and has the table
// run the collected job.
const driver = `package main

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"strings"

	smallage "github.com/smallage/smallage/runtime"
)

var failed bool

func fail(format string, args ...any) {
	failed = true
	fmt.Printf(format+"\n", args...)
}

// table calls a Dispatch with dependencies that are zero, or pointers to zero.
func table(dispatch any) smallage.Table {
	f := reflect.ValueOf(dispatch)
	args := make([]reflect.Value, f.Type().NumIn())
	for i := range args {
		args[i] = reflect.Zero(f.Type().In(i))
		if in := f.Type().In(i); in.Kind() == reflect.Pointer {
			args[i] = reflect.New(in.Elem())
		}
	}
	return f.Call(args)[0].Interface().(smallage.Table)
}

// run takes one job through wrapper, arguments and handler, with zero values and then with some that are not.
func run(name string, t smallage.Table, enqueue any) {
	f := reflect.ValueOf(enqueue)
	for round := range 2 {
		var q smallage.CollectingEnqueuer
		args := []reflect.Value{reflect.ValueOf(context.Background()), reflect.ValueOf(&q)}
		for i := 2; i < f.Type().NumIn()-1; i++ {
			v := reflect.New(f.Type().In(i)).Elem()
			if round == 1 {
				fill(v)
			}
			args = append(args, v)
		}
		out := f.Call(args)
		if err, _ := out[1].Interface().(error); err != nil {
			if !strings.Contains(err.Error(), "json.RawMessage") { // the zero value of arguments that have none in JSON
				fail("%s: enqueue: %v", name, err)
			}
			continue
		}
		if _, err := t.Call(context.Background(), q.Jobs()[0]); err != nil && !strings.Contains(err.Error(), "it is nil") {
			fail("%s: call: %v\n%s", name, err, q.Jobs()[0].Args)
		}
	}
}

func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if v.Type().Name() == "Number" {
			return
		}
		v.SetString("ä \"text\" 1")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Uint8 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		}
	}
	switch {
	case v.CanInt():
		v.SetInt(7)
	case v.CanUint():
		v.SetUint(7)
	case v.CanFloat():
		v.SetFloat(1.5)
	}
}

func done() {
	if failed {
		os.Exit(1)
	}
}
`

// runAccepted has every task that another package can reach enqueued and handled, all in one program.
func runAccepted(t *testing.T, w *workspace, outputs map[string]*Output) {
	t.Helper()
	var imports, calls strings.Builder
	names := map[string]string{}
	for _, scenario := range sortedKeys(outputs) {
		for _, task := range outputs[scenario].Tasks {
			// Programs and internal packages cannot be imported, nor unexported wrappers called.
			prefix := prefixOf(outputs[scenario], task)
			if prefix == "" || strings.Contains(task.Package, "/internal/") || isProgram(outputs[scenario]) || !ast.IsExported(prefix) {
				continue
			}
			client := clientPackage(w, outputs[scenario], task.Package)
			if strings.Contains(client, "/internal/") {
				continue
			}
			handlers := importName(&imports, names, task.Package)
			callers := handlers
			if client != "" {
				callers = importName(&imports, names, client)
			}
			fmt.Fprintf(&calls, "\trun(%q, table(%s.Dispatch), %s.%sEnqueue)\n", scenario+" "+task.Name, handlers, callers, prefix)
		}
	}
	w.write("driver/driver.go", driver)
	w.write("driver/main.go", "package main\n\nimport (\n"+imports.String()+")\n\nfunc main() {\n"+calls.String()+"\tdone()\n}\n")
	require.Greater(t, strings.Count(calls.String(), "\n"), 60)
	w.run("go", "run", "./driver")
}

// prefixOf finds a task's prefix in the code that was made for it.
func prefixOf(out *Output, task Task) string {
	for _, path := range sortedKeys(out.Files) {
		for line := range strings.Lines(string(out.Files[path])) {
			name, ok := strings.CutSuffix(strings.TrimSpace(line), fmt.Sprintf(" enqueues a job of the task %s.", task.Name))
			if ok && strings.HasPrefix(name, "// ") {
				return strings.TrimSuffix(strings.TrimPrefix(name, "// "), "Enqueue")
			}
		}
	}
	return ""
}

func isProgram(out *Output) bool {
	for _, data := range out.Files {
		if strings.Contains(string(data), "\npackage main\n") {
			return true
		}
	}
	return false
}

func importName(imports *strings.Builder, names map[string]string, path string) string {
	if name, ok := names[path]; ok {
		return name
	}
	name := fmt.Sprintf("p%d", len(names))
	names[path] = name
	fmt.Fprintf(imports, "\t%s %q\n", name, path)
	return name
}

// clientPackage returns the import path of the client of a package, if there is one.
func clientPackage(w *workspace, out *Output, owner string) string {
	for path, data := range out.Files {
		if clientOf(data) == owner {
			rel, _ := filepath.Rel(w.dir, filepath.Dir(path))
			return "example.com/" + filepath.ToSlash(rel)
		}
	}
	return ""
}
