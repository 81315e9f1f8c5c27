package gen

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/smallage/smallage/templates"
)

// Changes are the files that a write would touch, each list sorted.
type Changes struct {
	Write  []string
	Remove []string
}

// Changes compares the output with what lies on the disk. A file that differs in its line ends alone is as it should be:
// git has checked it out for Windows, and would only take them back.
func (o *Output) Changes() (Changes, error) {
	var c Changes
	for _, path := range sortedKeys(o.Files) {
		old, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return c, fmt.Errorf("read the file to be replaced: %w", err)
		}
		if err != nil || !bytes.Equal(plainLines(old), o.Files[path]) {
			c.Write = append(c.Write, path)
		}
	}
	c.Remove = o.Remove
	return c, nil
}

// plainLines is a text with its line ends as they are generated.
func plainLines(text []byte) []byte { return bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")) }

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
	for path := range o.Files {
		sweep(filepath.Dir(resolved(path)))
	}
	for _, path := range o.Remove {
		sweep(filepath.Dir(resolved(path)))
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
		if err := replace(staged, target, o.Files[path]); err != nil {
			return done, fmt.Errorf("replace %s: %w", path, err)
		}
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
	if info, err := os.Lstat(path); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return path
	}
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

// replace puts a staged file in the place of target. Another run that began meanwhile may have swept it away: it is then
// made once more.
func replace(staged map[string]string, target string, content []byte) error {
	for range 20 {
		err := os.Rename(staged[target], target)
		if err == nil {
			delete(staged, target)
			return nil
		}
		if _, gone := os.Lstat(staged[target]); !errors.Is(gone, fs.ErrNotExist) {
			return err
		}
		if _, staged[target], err = stage(target, content); err != nil {
			return err
		}
	}
	return errors.New("its new version was removed again and again; let no other run be at it")
}

// sweep removes what a run left behind that was killed between writing and renaming. It may remove the file of a run that
// is still at it, which then makes it once more; to tell the two apart by age would leave behind what is young, and clocks
// of shared folders differ.
func sweep(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), temporaryPrefix) && !entry.IsDir() {
			_ = os.Remove(filepath.Join(dir, entry.Name()))
		}
	}
}
