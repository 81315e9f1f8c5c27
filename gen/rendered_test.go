package gen

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/packages"

	"github.com/smallage/smallage/templates"
)

// remembered is a workspace whose runs remember what they rendered.
type remembered struct {
	*workspace
	cache string
}

var rememberedSources = map[string]string{
	"tasks/tasks.go": `package tasks

import (
	"context"

	"example.com/app/lib"
)

// Charge collects.
//
//smallage:task queue=billing
func Charge(ctx context.Context, store lib.Store, id string) (lib.Receipt, error) {
	return lib.Receipt{}, nil
}

// Other is another.
//
//smallage:task
func Other(ctx context.Context, id lib.ID) error { return nil }
`,
	"mail/mail.go": "package mail\n\nimport \"context\"\n\n//smallage:task\nfunc Send(ctx context.Context) error { return nil }\n",
	"lib/lib.go": `package lib

type ID string

type Store struct{ Name string }

type Receipt struct{ number byte }

func (r Receipt) MarshalBinary() ([]byte, error) { return []byte{r.number}, nil }

func (r *Receipt) UnmarshalBinary(data []byte) error { return nil }
`,
}

// newRemembered makes a workspace in which everything is generated, written and remembered.
func newRemembered(t *testing.T) *remembered {
	t.Helper()
	w := &remembered{newWorkspace(t, "example.com/app"), filepath.Join(t.TempDir(), "cache")}
	w.place()
	return w
}

// place puts the sources as they were at first, and generates.
func (w *remembered) place() {
	w.t.Helper()
	for name, text := range rememberedSources {
		w.write(name, text)
	}
	w.writeOutput(w.generate(w.cache))
}

// generate runs the generator with this folder to remember in.
func (w *remembered) generate(cache string) *Output {
	w.t.Helper()
	out, err := Generate(context.Background(), Options{Dir: w.dir, Patterns: []string{"./..."}, Env: w.env, Cache: cache})
	require.NoError(w.t, err)
	require.Empty(w.t, out.Diagnostics)
	return out
}

func (w *remembered) writeOutput(out *Output) Changes {
	w.t.Helper()
	done, err := out.Write()
	require.NoError(w.t, err)
	return done
}

// edit replaces text in a file.
func (w *remembered) edit(name, old, new string) {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.dir, name))
	require.NoError(w.t, err)
	require.Contains(w.t, string(data), old)
	w.write(name, strings.ReplaceAll(string(data), old, new))
}

func TestOnlyWhatChangedIsRenderedAnew(t *testing.T) {
	t.Parallel()
	w := newRemembered(t)
	tasks, mail := "tasks/"+templates.FileName, "mail/"+templates.FileName
	for _, change := range []struct {
		name     string
		make     func()
		recalled int // of the two files
		written  []string
		removed  []string
	}{
		{"nothing", func() {}, 2, nil, nil},
		{"a comment in a body", func() { w.edit("tasks/tasks.go", "return lib.Receipt{}, nil", "return lib.Receipt{}, nil // done") }, 2, nil, nil},
		{"line ends of a source", func() { w.edit("tasks/tasks.go", "\n", "\r\n") }, 2, nil, nil},
		{"a word of a generated file", func() { w.edit(tasks, "enqueues a job", "sends a job") }, 1, []string{tasks}, nil},
		{"an empty line of a generated file", func() { w.edit(tasks, "}\n\n// ", "}\n// ") }, 1, []string{tasks}, nil},
		{"line ends of a generated file", func() { w.edit(tasks, "\n", "\r\n") }, 2, nil, nil},
		{"a generated file is gone", func() { require.NoError(t, os.Remove(filepath.Join(w.dir, mail))) }, 1, []string{mail}, nil},
		{"a generated file is another's", func() {
			data, err := os.ReadFile(filepath.Join(w.dir, mail))
			require.NoError(t, err)
			w.write(tasks, string(data))
		}, 1, []string{tasks}, nil},
		{"a doc comment", func() { w.edit("tasks/tasks.go", "Charge collects.", "Charge collects once.") }, 1, []string{tasks}, nil},
		{"a directive", func() { w.edit("tasks/tasks.go", "queue=billing", "queue=bills") }, 1, []string{tasks}, nil},
		{"a directive that a worker reads", func() { w.edit("tasks/tasks.go", "queue=billing", "queue=billing optional=id") }, 1, []string{tasks}, nil},
		{"a parameter's name", func() { w.edit("tasks/tasks.go", "id string", "name string") }, 1, []string{tasks}, nil},
		{"a parameter becomes variadic", func() { w.edit("tasks/tasks.go", "id string", "id ...string") }, 1, []string{tasks}, nil},
		{"a parameter is injected", func() { w.edit("tasks/tasks.go", "queue=billing", "queue=billing inject=store") }, 1, []string{tasks}, nil},
		{"a type's name in a dependency", func() {
			w.edit("lib/lib.go", "type ID string", "type ID = Key\n\ntype Key string")
			w.edit("tasks/tasks.go", "lib.ID", "lib.Key")
		}, 1, []string{tasks}, nil},
		{"how a dependency's value is encoded", func() { w.edit("lib/lib.go", "func (r Receipt)", "func (r *Receipt)") }, 1, []string{tasks}, nil},
		{"a field in a dependency, which shows nowhere", func() { w.edit("lib/lib.go", "number byte", "number, other byte") }, 2, nil, nil},
		{"a dependency's package", func() {
			w.edit("lib/lib.go", "package lib", "package library")
			w.edit("tasks/tasks.go", "lib.", "library.")
			w.edit("tasks/tasks.go", "\t\"example.com/app/lib\"", "\tlibrary \"example.com/app/lib\"")
		}, 1, []string{tasks}, nil},
		{"the package's name", func() { w.edit("tasks/tasks.go", "package tasks", "package jobs") }, 1, []string{tasks}, nil},
		{"a declaration of an import's name", func() { w.edit("tasks/tasks.go", "// Other", "var smallage int\n\n// Other") }, 1, []string{tasks}, nil},
		{"a build constraint", func() { w.edit("tasks/tasks.go", "package tasks", "//go:build !other\n\npackage tasks") }, 1, []string{tasks}, nil},
		{"a task more", func() {
			w.edit("mail/mail.go", "//smallage:task", "//smallage:task\nfunc More(ctx context.Context) error { return nil }\n\n//smallage:task")
		}, 1, []string{mail}, nil},
		{"the last task is gone", func() { w.edit("mail/mail.go", "//smallage:task\n", "") }, 1, nil, []string{mail}},
	} {
		w.place()
		change.make()
		out := w.generate(w.cache)
		require.Equal(t, w.generate("").Files, out.Files, "%s: with what was remembered, something else comes out", change.name)
		require.Equal(t, change.recalled, out.Recalled, change.name)
		done := w.writeOutput(out)
		var written, removed []string
		for _, path := range done.Write {
			written = append(written, filepath.ToSlash(Shorter(w.dir, path)))
		}
		for _, path := range done.Remove {
			removed = append(removed, filepath.ToSlash(Shorter(w.dir, path)))
		}
		require.Equal(t, change.written, written, change.name)
		require.Equal(t, change.removed, removed, change.name)
		again := w.generate(w.cache)
		require.Equal(t, len(again.Files), again.Recalled, "%s: the run after it", change.name)
	}
}

func TestAClientIsRememberedByItself(t *testing.T) {
	t.Parallel()
	w := newRemembered(t)
	w.edit("mail/mail.go", "package mail", "//smallage:package client=mailq\npackage mail")
	w.writeOutput(w.generate(w.cache))
	out := w.generate(w.cache)
	require.Equal(t, 3, out.Recalled)
	w.edit("mail/mailq/"+templates.FileName, "SendEnqueue", "PostEnqueue")
	out = w.generate(w.cache)
	require.Equal(t, 2, out.Recalled)
	require.Equal(t, []string{filepath.Join(w.dir, "mail", "mailq", templates.FileName)}, w.writeOutput(out).Write)
}

// TestWhatWasCheckedIsStillToBeWritten has the first run only look, so that what it remembers was never written.
func TestWhatWasCheckedIsStillToBeWritten(t *testing.T) {
	t.Parallel()
	w := newRemembered(t)
	w.edit("tasks/tasks.go", "queue=billing", "queue=bills")
	for range 2 {
		out := w.generate(w.cache)
		require.Equal(t, 1, out.Recalled)
		changes, err := out.Changes()
		require.NoError(t, err)
		require.Equal(t, []string{filepath.Join(w.dir, "tasks", templates.FileName)}, changes.Write)
	}
}

func TestARecordOfAnotherProgramSaysNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := &templates.File{Package: "p", Path: "example.com/p", Dir: dir}
	path := filepath.Join(dir, templates.FileName)
	source := []byte("rendered")
	require.NoError(t, os.WriteFile(path, source, 0o600))
	r := openRendered(filepath.Join(dir, "cache"))
	model, found := r.recall(path, f)
	require.Nil(t, found)
	r.remember(path, model, source)
	_, found = r.recall(path, f)
	require.Equal(t, source, found)
	other := openRendered(filepath.Join(dir, "cache"))
	other.program[7]++
	_, found = other.recall(path, f)
	require.Nil(t, found)
}

// TestARecordOfTwoRunsIsNone has the model of one record and the source of another in one file, as two runs that wrote at
// once could leave it; and the source of the other is what lies on the disk.
func TestARecordOfTwoRunsIsNone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := &templates.File{Package: "p", Path: "example.com/p", Dir: dir}
	path := filepath.Join(dir, templates.FileName)
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
	r := openRendered(filepath.Join(dir, "cache"))
	model, _ := r.recall(path, f)
	r.remember(path, [32]byte{1}, []byte("old"))
	old, err := os.ReadFile(r.name(path))
	require.NoError(t, err)
	r.remember(path, model, []byte("new"))
	young, err := os.ReadFile(r.name(path))
	require.NoError(t, err)
	for _, checksum := range [][]byte{old[64:], young[64:]} {
		require.NoError(t, os.WriteFile(r.name(path), slices.Concat(young[:32], old[32:64], checksum), 0o600))
		_, found := r.recall(path, f)
		require.Nil(t, found)
	}
}

func TestProgramIsTheHashOfWhatRuns(t *testing.T) {
	t.Parallel()
	own, err := program()
	require.NoError(t, err)
	path, err := os.Executable()
	require.NoError(t, err)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, sha256.Sum256(data), own)
}

// TestRecordsThatAreNoUseAreRenderedOver spoils the folder in every way; each time all comes out as without it.
func TestRecordsThatAreNoUseAreRenderedOver(t *testing.T) {
	t.Parallel()
	w := newRemembered(t)
	want := w.generate("").Files
	each := func(spoil func(path string)) func() {
		return func() {
			records, err := filepath.Glob(filepath.Join(w.cache, recordPrefix+"*"))
			require.NoError(t, err)
			require.Len(t, records, 2)
			for _, path := range records {
				spoil(path)
			}
		}
	}
	rewrite := func(change func(data []byte) []byte) func() {
		return each(func(path string) {
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path, change(data), 0o600))
		})
	}
	random := rand.New(rand.NewPCG(1, 1))
	for _, damage := range []struct {
		name    string
		make    func()
		recover bool // the run after it remembers again
	}{
		{"the folder is gone", func() { require.NoError(t, os.RemoveAll(w.cache)) }, true},
		{"the records are gone", each(func(path string) { require.NoError(t, os.Remove(path)) }), true},
		{"empty", rewrite(func([]byte) []byte { return nil }), true},
		{"cut short", rewrite(func(data []byte) []byte { return data[:len(data)-1] }), true},
		{"too long", rewrite(func(data []byte) []byte { return append(data, 0) }), true},
		{"zeros", rewrite(func(data []byte) []byte { return make([]byte, len(data)) }), true},
		{"the halves changed places", rewrite(func(data []byte) []byte { return slices.Concat(data[32:64], data[:32], data[64:]) }), true},
		{"one bit differs", rewrite(func(data []byte) []byte {
			data[random.IntN(len(data))] ^= 1 << random.IntN(8)
			return data
		}), true},
		{"a folder in the place of a record", each(func(path string) {
			require.NoError(t, os.Remove(path))
			require.NoError(t, os.MkdirAll(filepath.Join(path, "x"), 0o700))
		}), false},
		{"a file in the place of the folder", func() {
			require.NoError(t, os.RemoveAll(w.cache))
			require.NoError(t, os.WriteFile(w.cache, nil, 0o600))
		}, false},
	} {
		require.Equal(t, 2, w.generate(w.cache).Recalled, "before: %s", damage.name)
		damage.make()
		out := w.generate(w.cache)
		require.Equal(t, want, out.Files, damage.name)
		require.Zero(t, out.Recalled, damage.name)
		again := w.generate(w.cache)
		require.Equal(t, want, again.Files, damage.name)
		if damage.recover {
			require.Equal(t, 2, again.Recalled, damage.name)
		} else {
			require.Zero(t, again.Recalled, damage.name)
			require.NoError(t, os.RemoveAll(w.cache))
			w.generate(w.cache)
		}
	}
	// Whose record lies where: each other's.
	records, err := filepath.Glob(filepath.Join(w.cache, recordPrefix+"*"))
	require.NoError(t, err)
	require.NoError(t, os.Rename(records[0], filepath.Join(w.cache, "kept")))
	require.NoError(t, os.Rename(records[1], records[0]))
	require.NoError(t, os.Rename(filepath.Join(w.cache, "kept"), records[1]))
	out := w.generate(w.cache)
	require.Equal(t, want, out.Files)
	require.Zero(t, out.Recalled)
}

func TestRecordsGoWhenTheyWereNotUsedForLong(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	age := func(name string, by time.Duration) {
		at := time.Now().Add(-by)
		require.NoError(t, os.Chtimes(filepath.Join(dir, name), at, at))
	}
	r := &rendered{dir: dir}
	used, unused, foreign := filepath.Base(r.name("used")), filepath.Base(r.name("unused")), "other"
	r.remember("used", [32]byte{1}, nil)
	r.remember("unused", [32]byte{1}, nil)
	require.NoError(t, os.WriteFile(filepath.Join(dir, foreign), nil, 0o600))
	for _, name := range []string{used, unused, foreign} {
		age(name, 2*recordAge)
	}
	_, ok := r.read("used")
	require.True(t, ok)
	later := &rendered{dir: dir}
	later.remember("new", [32]byte{1}, nil)
	require.FileExists(t, filepath.Join(dir, unused), "it was looked at a moment ago")
	age("trimmed", 2*recordStep)
	later = &rendered{dir: dir}
	later.remember("new", [32]byte{1}, nil)
	require.ElementsMatch(t, []string{used, filepath.Base(r.name("new")), foreign, "trimmed"}, entries(t, dir))
}

// TestChangedSourcesAreRecalledAsTheyWouldBeRendered runs over every accepted scenario, remembers it, changes a word all
// over the sources and runs again: whatever is still accepted must come out as if nothing had been remembered.
func TestChangedSourcesAreRecalledAsTheyWouldBeRendered(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	w, list, all := loadAll(t, "accepted")
	generate := func(all []*packages.Package, s *scenario, cache string) *Output {
		var own []*packages.Package
		for _, p := range all {
			if strings.HasPrefix(p.PkgPath+"/", "example.com/"+s.name+"/") {
				own = append(own, p)
			}
		}
		out, err := fromPackages(Options{Dir: filepath.Join(w.dir, s.name), Patterns: []string{"./..."}, Cache: cache}, own)
		require.NoError(t, err, s.name)
		return out
	}
	before := map[string]map[string][]byte{}
	for _, s := range list {
		out := generate(all, s, cache)
		require.Zero(t, out.Recalled)
		_, err := out.Write()
		require.NoError(t, err)
		before[s.name] = out.Files
		again := generate(all, s, cache)
		require.Equal(t, len(out.Files), again.Recalled, s.name)
		require.Equal(t, out.Files, again.Files, s.name)
	}
	random := rand.New(rand.NewPCG(*mutantSeed, 7))
	same, other := 0, 0
	for range 3 {
		for _, s := range list {
			word := anyWord(s, random)
			for _, f := range s.archive.Files {
				if isSource(f.Name) && strings.HasSuffix(f.Name, ".go") {
					w.write(s.name+"/"+f.Name, word.ReplaceAllString(string(f.Data), "${0}x"))
				}
			}
		}
		all, err := load(context.Background(), Options{Dir: w.dir, Patterns: []string{"./..."}, Env: w.env})
		require.NoError(t, err)
		for _, s := range list {
			want := generate(all, s, "")
			got := generate(all, s, cache)
			require.Equal(t, want.Files, got.Files, s.name)
			require.Equal(t, fmt.Sprint(want.Diagnostics), fmt.Sprint(got.Diagnostics), s.name)
			for path, data := range want.Files {
				if string(before[s.name][path]) == string(data) {
					same++
				} else {
					other++
				}
			}
		}
	}
	require.Greater(t, same, 10, "the changes left too little as it was")
	require.Greater(t, other, 10, "the changes did too little")
}

// anyWord picks a word of a scenario's sources, whatever it means there.
func anyWord(s *scenario, random *rand.Rand) *regexp.Regexp {
	var words []string
	for _, f := range s.archive.Files {
		if isSource(f.Name) && strings.HasSuffix(f.Name, ".go") {
			words = append(words, regexp.MustCompile(`\b[a-zA-Z]+\b`).FindAllString(string(f.Data), -1)...)
		}
	}
	return regexp.MustCompile(`\b` + words[random.IntN(len(words))] + `\b`)
}
