package gen

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/smallage/smallage/templates"
)

// rendered remembers, from run to run, which source came out of which model. Where the file on the disk has that very
// source, it need not be made again. Only hashes are kept, so nothing that lies here can ever get into a generated file;
// and whatever is wrong with the folder, files are rendered as if there were none.
//
// A record is a file for each generated one, named after its path: the hash of program and model, that of the source, and
// one of both, by which a record that two runs wrote at once, or that was cut short, is known to be none.
type rendered struct {
	dir     string
	program [sha256.Size]byte // of the generator that is running
	ready   sync.Once
}

// record is what is kept of one file.
type record struct{ model, source [sha256.Size]byte }

const (
	recordAge  = 30 * 24 * time.Hour // what was not used for so long is removed
	recordStep = 24 * time.Hour      // how exactly that is known
)

// openRendered returns nil where nothing can be remembered.
func openRendered(dir string) *rendered {
	if dir == "" {
		return nil
	}
	program, err := program()
	if err != nil {
		return nil
	}
	return &rendered{dir: dir, program: program}
}

// program is the hash of the program that is running. What its build says of itself would not do: two builds of a
// working copy may say the same.
var program = sync.OnceValues(func() (sum [sha256.Size]byte, err error) {
	path := "/proc/self/exe" // leads to what is running even where its file was replaced
	if runtime.GOOS != "linux" {
		if path, err = os.Executable(); err != nil {
			return sum, err
		}
	}
	file, err := os.Open(path)
	if err != nil {
		return sum, err
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err != nil || info.ModTime().After(started) {
		return sum, errors.Join(err, errors.New("the program was replaced"))
	}
	own, ok := debug.ReadBuildInfo()
	if there, err := buildinfo.Read(file); err != nil || !ok || there.String() != own.String() {
		return sum, errors.Join(err, errors.New("the program is not what the file holds"))
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return sum, err
	}
	return [sha256.Size]byte(hash.Sum(nil)), nil
})

var started = time.Now()

// recall returns what lies at path if it is what Render would return for the file, and else nil. The hash is what
// remember takes.
func (r *rendered) recall(path string, f *templates.File) (model [sha256.Size]byte, source []byte) {
	if r == nil {
		return model, nil
	}
	own, err := templates.Fingerprint(f)
	if err != nil {
		return model, nil
	}
	model = sha256.Sum256(append(r.program[:], own[:]...))
	kept, ok := r.read(path)
	if !ok || kept.model != model {
		return model, nil
	}
	if source, err = os.ReadFile(path); err != nil {
		return model, nil
	}
	if sha256.Sum256(source) == kept.source {
		return model, source
	}
	if source = plainLines(source); sha256.Sum256(source) == kept.source {
		return model, source
	}
	return model, nil
}

// read returns the record of a generated file, and keeps it from growing old.
func (r *rendered) read(path string) (kept record, ok bool) {
	name := r.name(path)
	data, err := os.ReadFile(name)
	if err != nil || len(data) != 3*sha256.Size {
		return kept, false
	}
	kept = record{[sha256.Size]byte(data), [sha256.Size]byte(data[sha256.Size:])}
	if !bytes.Equal(kept.bytes(), data) {
		return kept, false
	}
	if info, err := os.Stat(name); err == nil && time.Since(info.ModTime()) > recordStep {
		now := time.Now()
		_ = os.Chtimes(name, now, now)
	}
	return kept, true
}

// bytes is the record as it lies on the disk.
func (k record) bytes() []byte {
	both := append(k.model[:], k.source[:]...)
	sum := sha256.Sum256(both)
	return append(both, sum[:]...)
}

// name is where the record of a generated file lies.
func (r *rendered) name(path string) string {
	sum := sha256.Sum256([]byte(path))
	return filepath.Join(r.dir, recordPrefix+hex.EncodeToString(sum[:]))
}

const recordPrefix = "rendered-"

// remember keeps that Render has returned source for the model.
func (r *rendered) remember(path string, model [sha256.Size]byte, source []byte) {
	if r == nil || model == [sha256.Size]byte{} {
		return
	}
	r.ready.Do(func() {
		_ = os.MkdirAll(r.dir, 0o700)
		r.removeOld()
	})
	_ = os.WriteFile(r.name(path), record{model, sha256.Sum256(source)}.bytes(), 0o600)
}

// removeOld removes, once a day at most, the records that no run has used for long.
func (r *rendered) removeOld() {
	mark := filepath.Join(r.dir, "trimmed")
	if info, err := os.Stat(mark); err == nil && time.Since(info.ModTime()) < recordStep {
		return
	}
	if os.WriteFile(mark, nil, 0o600) != nil {
		return
	}
	now := time.Now()
	_ = os.Chtimes(mark, now, now) // writing nothing leaves the time of a file as it was
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		return
	}
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && strings.HasPrefix(entry.Name(), recordPrefix) && now.Sub(info.ModTime()) > recordAge {
			_ = os.Remove(filepath.Join(r.dir, entry.Name()))
		}
	}
}

// CacheVariable names the environment variable that says where CacheFolder is.
const CacheVariable = "SMALLAGEGEN_CACHE"

// CacheFolder is where a command remembers what it has rendered: the folder in CacheVariable, or one of the user's
// caches. It is "" where the variable is "off", and where there is no home.
func CacheFolder() (string, error) {
	switch dir := os.Getenv(CacheVariable); {
	case dir == "off":
		return "", nil
	case dir == "":
		if caches, err := os.UserCacheDir(); err == nil {
			return filepath.Join(caches, "smallagegen"), nil
		}
		return "", nil
	case !filepath.IsAbs(dir):
		return "", fmt.Errorf("%s is %q, which is not a whole path; write one, or off", CacheVariable, dir)
	default:
		return dir, nil
	}
}
