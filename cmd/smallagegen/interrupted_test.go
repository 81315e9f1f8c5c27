//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// temporaries matches the names of files on their way.
const temporaries = ".smallage_gen.go.*"

// application is a module of many packages that was generated once, and whose sources changed since.
type application struct {
	t        *testing.T
	dir      string
	env      []string
	old, new map[string]string // generated files, by path
}

func newApplication(t *testing.T, packages int) *application {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	a := &application{t: t, dir: dir, env: append(append(os.Environ(), goEnvironment(t)...), "PWD="+dir, "SMALLAGEGEN_CACHE=off")}
	mod, sum, err := moduleOf("example.com/app")
	require.NoError(t, err)
	a.write("go.mod", mod)
	a.write("go.sum", sum)
	a.sources(packages, "new")
	a.run()
	a.new = a.generated()
	a.sources(packages, "old")
	a.run()
	a.old = a.generated()
	require.Len(t, a.old, packages)
	a.sources(packages, "new")
	return a
}

func (a *application) sources(packages int, queue string) {
	a.t.Helper()
	for i := range packages {
		name := fmt.Sprintf("p%03d", i)
		a.write(name+"/p.go", "package "+name+"\n\nimport \"context\"\n\n//smallage:task queue="+queue+"\nfunc Do(ctx context.Context) error { return nil }\n")
	}
}

func (a *application) write(name, text string) {
	a.t.Helper()
	path := filepath.Join(a.dir, name)
	require.NoError(a.t, os.MkdirAll(filepath.Dir(path), 0o777))
	require.NoError(a.t, os.WriteFile(path, []byte(text), 0o666))
}

// reset puts the old generated files in their places.
func (a *application) reset() {
	a.t.Helper()
	for path, text := range a.old {
		require.NoError(a.t, os.WriteFile(path, []byte(text), 0o666))
	}
}

func (a *application) command() (cmd *exec.Cmd, said *bytes.Buffer) {
	cmd = exec.Command("smallagegen", "./...")
	cmd.Dir, cmd.Env = a.dir, a.env
	said = &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = said, said
	return cmd, said
}

func (a *application) run() {
	a.t.Helper()
	cmd, said := a.command()
	require.NoError(a.t, cmd.Run(), said)
}

func (a *application) generated() map[string]string {
	a.t.Helper()
	paths, err := filepath.Glob(filepath.Join(a.dir, "*", "smallage_gen.go"))
	require.NoError(a.t, err)
	files := map[string]string{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		require.NoError(a.t, err)
		files[path] = string(data)
	}
	return files
}

func (a *application) temporaries() []string {
	a.t.Helper()
	paths, err := filepath.Glob(filepath.Join(a.dir, "*", temporaries))
	require.NoError(a.t, err)
	return paths
}

// requireRepaired has the next run finish what the last one did not.
func (a *application) requireRepaired() {
	a.t.Helper()
	a.run()
	require.Equal(a.t, a.new, a.generated())
	require.Empty(a.t, a.temporaries())
}

func TestSignalsWhileTheGoCommandWorksLeaveEverythingAsItWas(t *testing.T) {
	t.Parallel()
	a := newApplication(t, 2)
	tools := t.TempDir()
	goCommand, err := exec.LookPath("go")
	require.NoError(t, err)
	for _, step := range []string{"env", "list"} {
		for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
			reached := filepath.Join(tools, "reached-"+step+sig.String())
			script := fmt.Sprintf("#!/bin/sh\nif [ \"$1\" = %s ]; then : > '%s'; exec sleep 600; fi\nexec '%s' \"$@\"\n", step, reached, goCommand)
			require.NoError(t, os.WriteFile(filepath.Join(tools, "go"), []byte(script), 0o755))
			cmd, said := a.command()
			cmd.Env = append(cmd.Env, "PATH="+tools+string(filepath.ListSeparator)+os.Getenv("PATH"))
			require.NoError(t, cmd.Start())
			require.Eventually(t, func() bool {
				_, err := os.Stat(reached)
				return err == nil
			}, time.Minute, time.Millisecond)
			require.NoError(t, cmd.Process.Signal(sig))
			require.Equal(t, 1, waited(t, cmd), said)
			require.Equal(t, "smallagegen: interrupted; nothing was written\n", said.String())
			require.Equal(t, a.old, a.generated())
			require.Empty(t, a.temporaries())
		}
	}
	a.requireRepaired()
}

// TestSignalsWhileFilesAreWritten stops the command between its first file that is on its way and the first in its place.
func TestSignalsWhileFilesAreWritten(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			a := newApplication(t, 60)
			cmd, said := a.stoppedWhileWriting()
			require.NoError(t, cmd.Process.Signal(sig))
			require.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
			status := waited(t, cmd)
			if sig == syscall.SIGKILL {
				require.Equal(t, -1, status)
				require.Equal(t, a.old, a.generated())
				require.NotEmpty(t, a.temporaries())
			} else {
				require.Equal(t, 0, status, said)
				require.Equal(t, a.new, a.generated())
				require.Empty(t, a.temporaries())
			}
			a.requireRepaired()
		})
	}
}

// stoppedWhileWriting returns a command that is stopped with something on its way and nothing in its place.
func (a *application) stoppedWhileWriting() (*exec.Cmd, *bytes.Buffer) {
	a.t.Helper()
	for range 100 {
		a.reset()
		cmd, said := a.command()
		require.NoError(a.t, cmd.Start())
		if a.stopAtTemporary(cmd.Process.Pid) {
			if reflect.DeepEqual(a.old, a.generated()) && len(a.temporaries()) > 0 {
				return cmd, said
			}
			require.NoError(a.t, cmd.Process.Signal(syscall.SIGCONT))
		}
		_ = cmd.Wait() // too late; whether it was, is seen from the files of the next
	}
	require.FailNow(a.t, "no command could be stopped between its first file and its last")
	return nil, nil
}

// stopAtTemporary stops a command when its first file is on its way, and returns false if it ended before.
func (a *application) stopAtTemporary(pid int) bool {
	a.t.Helper()
	for {
		var status syscall.WaitStatus
		if ended, err := syscall.Wait4(pid, &status, syscall.WNOHANG, nil); err != nil || ended == pid {
			return false
		}
		entries, err := os.ReadDir(filepath.Join(a.dir, "p000"))
		require.NoError(a.t, err)
		for _, entry := range entries {
			if match, _ := filepath.Match(temporaries, entry.Name()); match {
				require.NoError(a.t, syscall.Kill(pid, syscall.SIGSTOP))
				_, err := syscall.Wait4(pid, &status, syscall.WUNTRACED, nil)
				require.NoError(a.t, err)
				return status.Stopped()
			}
		}
	}
}

// TestCommandsKilledAtAnyMomentLeaveWholeFiles kills commands at moments all over their lives.
func TestCommandsKilledAtAnyMomentLeaveWholeFiles(t *testing.T) {
	t.Parallel()
	a := newApplication(t, 8)
	a.reset()
	start := time.Now()
	a.run()
	life := time.Since(start)
	const rounds = 12
	for i := range rounds {
		a.reset()
		cmd, _ := a.command()
		require.NoError(t, cmd.Start())
		moment := time.NewTimer(life * time.Duration(i+1) / rounds)
		<-moment.C
		_ = cmd.Process.Kill() // it may have ended
		_ = waited(t, cmd)
		for path, text := range a.generated() {
			require.Contains(t, []string{a.old[path], a.new[path]}, text, "%s is neither the old file nor the new one", path)
		}
		require.Len(t, a.generated(), len(a.old))
	}
	a.requireRepaired()
}

// waited returns the status of an ended command; -1 for one that a signal ended.
func waited(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(2 * time.Minute):
		_ = cmd.Process.Kill()
		require.FailNow(t, "the command did not end")
	}
	return cmd.ProcessState.ExitCode()
}
