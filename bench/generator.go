package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	madePackages = 100
	madeTasks    = 10 // in each package
)

// anew is the generator in a run that remembers nothing of those before it and has to render every file.
const anew = "smallagegen, all rendered anew"

// madeModule is a module of annotated packages, and the generator that works on it. What the generator remembers lies in
// the module's folder, so that nothing is left behind.
type madeModule struct {
	dir, generator, remembered, forgotten string
}

// makeModule writes the module, builds the generator and runs everything once, so that all caches are warm.
func makeModule(ctx context.Context) (*madeModule, error) {
	fmt.Fprintln(os.Stderr, "bench: making a module for the generator, and building it so that all caches are warm")
	root, err := command(ctx, "", "go", "list", "-m", "-f", "{{.Dir}}", "github.com/smallage/smallage")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "smallage-bench-module-")
	if err != nil {
		return nil, err
	}
	m := &madeModule{
		dir: dir, generator: filepath.Join(dir, "smallagegen"),
		remembered: filepath.Join(dir, ".remembered"), forgotten: filepath.Join(dir, ".forgotten"),
	}
	root = strings.TrimSpace(root)
	if _, err := command(ctx, root, "go", "build", "-o", m.generator, "./cmd/smallagegen"); err != nil {
		return m, err
	}
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		return m, err
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return m, err
	}
	text := strings.Replace(string(mod), "module github.com/smallage/smallage\n", "module made\n", 1) +
		"\nrequire github.com/smallage/smallage v0.0.0\n\nreplace github.com/smallage/smallage => " + root + "\n"
	if err := writeFiles(dir, map[string]string{"go.mod": text, "go.sum": string(sum)}); err != nil {
		return m, err
	}
	for p := range madePackages {
		var source strings.Builder
		fmt.Fprintf(&source, "package p%d\n\nimport (\n\t\"context\"\n\t\"time\"\n\n\t\"github.com/google/uuid\"\n)\n\n", p)
		source.WriteString("// Store is what the tasks work on.\ntype Store struct{ names []string }\n")
		for n := range madeTasks {
			fmt.Fprintf(&source, "\n// Task%d does a part of the work.\n//\n//smallage:task queue=made attempts=5 timeout=30s inject=store\n"+
				"func Task%d(ctx context.Context, store *Store, docID uuid.UUID, names []string, due time.Time) ([]byte, error) {\n\treturn nil, nil\n}\n", n, n)
		}
		if err := writeFiles(filepath.Join(dir, fmt.Sprintf("p%d", p)), map[string]string{"tasks.go": source.String()}); err != nil {
			return m, err
		}
	}
	list := []string{"go", "list", "-export", "-deps", "./..."}
	for _, args := range [][]string{{m.generator, "./..."}, list, {m.generator, "./..."}, list} {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		if err := m.run(cmd, dir, m.remembered); err != nil {
			return m, err
		}
	}
	return m, nil
}

func writeFiles(dir string, files map[string]string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (m *madeModule) remove() {
	if m != nil {
		_ = os.RemoveAll(m.dir)
	}
}

// measure runs the generator, or go list on the same packages, once.
func (m *madeModule) measure(ctx context.Context, who, packages string) (metrics, error) {
	dir := m.dir
	if packages == "." {
		dir = filepath.Join(dir, "p7")
	}
	args, cache := []string{m.generator, packages}, m.remembered
	switch who {
	case "go list":
		args = []string{"go", "list", "-export", "-deps", packages}
	case anew:
		cache = m.forgotten
		if err := os.RemoveAll(cache); err != nil {
			return nil, err
		}
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	begin := time.Now()
	if err := m.run(cmd, dir, cache); err != nil {
		return nil, err
	}
	took := time.Since(begin)
	usage, _ := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	cpu := cmd.ProcessState.SystemTime() + cmd.ProcessState.UserTime() // with what it has started and waited for
	return metrics{"seconds": took.Seconds(), "cpu": cpu.Seconds(), "peak": float64(usage.Maxrss) * 1024}, nil
}

func command(ctx context.Context, dir, name string, args ...string) (string, error) {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &out
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out.String())
	}
	return out.String(), nil
}

// run carries out a command as a user of the module would, but for where the generator remembers.
func (m *madeModule) run(cmd *exec.Cmd, dir, cache string) error {
	var out bytes.Buffer
	cmd.Dir, cmd.Stderr = dir, &out
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off", "SMALLAGEGEN_CACHE="+cache)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, out.String())
	}
	return nil
}
