package gen

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/smallage/smallage/templates"
)

// Changes are the files that a write would touch, each list sorted.
type Changes struct {
	Write  []string
	Remove []string
}

// Changes compares the output with what lies on the disk.
func (o *Output) Changes() (Changes, error) {
	var c Changes
	for _, path := range sortedKeys(o.Files) {
		old, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return c, fmt.Errorf("read the file to be replaced: %w", err)
		}
		if err != nil || !bytes.Equal(old, o.Files[path]) {
			c.Write = append(c.Write, path)
		}
	}
	c.Remove = o.Remove
	return c, nil
}

// Write puts the output on the disk and returns what it changed. Every file is complete beside its old version before
// the first is replaced, so that a failure on the way leaves all old ones as they were. It refuses an output with
// diagnostics.
func (o *Output) Write() (done Changes, err error) {
	if len(o.Diagnostics) > 0 {
		return done, fmt.Errorf("write generated files: there are %d diagnostics", len(o.Diagnostics))
	}
	changes, err := o.Changes()
	if err != nil {
		return done, err
	}
	staged := make(map[string]string, len(changes.Write))
	defer func() {
		for _, temporary := range staged {
			_ = os.Remove(temporary) // those that were renamed are gone already
		}
	}()
	var created []string
	defer func() {
		if err != nil {
			for i := len(created) - 1; i >= 0; i-- {
				_ = os.Remove(created[i]) // only where it is still empty
			}
		}
	}()
	for _, path := range changes.Write {
		made, err := makeFolder(filepath.Dir(path))
		created = append(created, made...)
		if err != nil {
			return done, fmt.Errorf("make the folder of %s: %w", path, err)
		}
		target, temporary, err := stage(path, o.Files[path])
		if err != nil {
			return done, fmt.Errorf("write %s: %w; the folder must be writable", path, err)
		}
		staged[target] = temporary
	}
	for _, path := range changes.Write {
		target := resolved(path)
		if err := os.Rename(staged[target], target); err != nil {
			return done, fmt.Errorf("replace %s: %w", path, err)
		}
		delete(staged, target)
		done.Write = append(done.Write, path)
	}
	for _, path := range changes.Remove {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return done, fmt.Errorf("remove %s, which is no longer needed: %w", path, err)
		}
		_ = os.Remove(filepath.Dir(path)) // only where it is empty: the folder of a client
		done.Remove = append(done.Remove, path)
	}
	return done, nil
}

// makeFolder makes a folder and returns which ones it had to make, the outermost first.
func makeFolder(dir string) (made []string, err error) {
	if _, err := os.Stat(dir); err == nil {
		return nil, nil
	}
	if parent := filepath.Dir(dir); parent != dir {
		if made, err = makeFolder(parent); err != nil {
			return made, err
		}
	}
	if err := os.Mkdir(dir, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return made, err
	}
	return append(made, dir), nil
}

// resolved follows a link, so that the file that it leads to is replaced and not the link.
func resolved(path string) string {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target
	}
	return path
}

// temporaryPrefix begins the names of files on their way. The go command ignores them.
const temporaryPrefix = "." + templates.FileName + "."

// stage writes the content into a temporary file in the same folder, with the mode of the file that it will replace.
func stage(path string, content []byte) (target, temporary string, err error) {
	target = resolved(path)
	if info, err := os.Stat(target); err == nil && info.IsDir() {
		return "", "", errors.New("it is a folder")
	}
	sweep(filepath.Dir(target))
	file, err := os.CreateTemp(filepath.Dir(target), temporaryPrefix+"*")
	if err != nil {
		return "", "", err
	}
	temporary = file.Name()
	defer func() {
		if err != nil {
			_ = os.Remove(temporary)
		}
	}()
	_, err = file.Write(content)
	if err == nil {
		err = file.Chmod(modeFor(target))
	}
	if closing := file.Close(); err == nil {
		err = closing
	}
	return target, temporary, err
}

// modeFor is the mode of the file that is replaced, or that of any new source file.
func modeFor(path string) fs.FileMode {
	if info, err := os.Stat(path); err == nil {
		return info.Mode().Perm()
	}
	return 0o644
}

// sweep removes what a run left behind that was killed between writing and renaming. Younger files may belong to a run
// that is still at it.
func sweep(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), temporaryPrefix) {
			continue
		}
		if info, err := entry.Info(); err == nil && time.Since(info.ModTime()) > time.Minute {
			_ = os.Remove(filepath.Join(dir, entry.Name()))
		}
	}
}
