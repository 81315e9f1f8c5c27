package gen

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/tools/go/packages"

	"github.com/smallage/smallage/templates"
)

// Output is what a run found and what it would write.
type Output struct {
	Files       map[string][]byte // what each generated file should hold, by absolute path
	Remove      []string          // generated files that are no longer needed
	Diagnostics []Diagnostic      // everything that is wrong, by position; with any, nothing may be written
	Tasks       []Task            // what was found, by name
	Packages    []string          // import paths of what was loaded
	Loading     time.Duration     // what the go command and type-checking took
	Making      time.Duration     // what the rest took
	Recalled    int               // how many files need not be rendered, because they are as an earlier run rendered them
}

// ErrNoTask is returned where the packages hold no task and nothing that was generated for one.
var ErrNoTask = errors.New("no task found")

// Generate loads the packages, checks them and makes their code. It changes nothing. The error is for what has no place
// in the sources: patterns that match nothing, packages without a task, or a go command that fails.
func Generate(ctx context.Context, o Options) (*Output, error) {
	if len(o.Patterns) == 0 {
		o.Patterns = []string{"."}
	}
	dir, err := filepath.Abs(o.Dir) // "" is the current folder
	if err != nil {
		return nil, fmt.Errorf("find the folder %s: %w", o.Dir, err)
	}
	o.Dir = dir
	start := time.Now()
	if o.Cache != "" {
		go func() { _, _ = program() }() // while the go command works
	}
	list, err := load(ctx, o)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		if err := emptyLoad(ctx, o); err != nil {
			return nil, err
		}
	}
	loaded := time.Now()
	out, err := fromPackages(o, list)
	if err != nil {
		return nil, err
	}
	out.Loading, out.Making = loaded.Sub(start), time.Since(loaded)
	if nothing := len(out.Tasks)+len(out.Diagnostics)+len(out.Remove)+len(out.Files) == 0; nothing && len(list) == 0 {
		return nil, fmt.Errorf("no package matches %s; name folders that hold Go files, such as ./tasks, or ./... for all below", strings.Join(o.Patterns, " "))
	} else if nothing {
		return nil, fmt.Errorf("%w in %s; put //smallage:task into the doc comment of a function, or name the packages that have some, such as ./... for all below", ErrNoTask, strings.Join(o.Patterns, " "))
	}
	return out, nil
}

// fromPackages does all that follows the load.
func fromPackages(o Options, list []*packages.Package) (*Output, error) {
	slices.SortFunc(list, func(a, b *packages.Package) int { return cmp.Compare(a.PkgPath, b.PkgPath) })
	r := &reporter{dir: o.Dir}
	out := &Output{Files: map[string][]byte{}}
	for _, p := range list {
		out.Packages = append(out.Packages, p.PkgPath)
	}
	sources := checked(list, r)
	unlisted := unlisted(o, sources)
	reportBegun(append(scanUnlisted(unlisted, r), sources...), r)
	checkNamesAcross(sources, r)
	checkClientsAcross(sources, r)
	importCycles(sources, r)
	var files []*templates.File
	for _, s := range sources {
		files = append(files, s.plan(out, r)...)
		for _, t := range s.tasks {
			out.Tasks = append(out.Tasks, listed(t, o.Dir))
		}
	}
	slices.SortFunc(out.Tasks, func(a, b Task) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Package, b.Package))
	})
	out.Diagnostics = sorted(r.list)
	if len(out.Diagnostics) > 0 {
		out.Files = nil
		return out, nil
	}
	for path := range out.Files {
		if err := checkReplaceable(path, r); err != nil {
			return nil, err
		}
	}
	if out.Diagnostics = sorted(r.list); len(out.Diagnostics) > 0 {
		out.Files = nil
		return out, nil
	}
	if err := render(o, files, out); err != nil {
		return nil, err
	}
	return out, settleOrphans(o, orphans(sources, unlisted, out.Files), out)
}

// checked looks at every package by itself, on all processors. What is reported comes in the order of the packages.
func checked(list []*packages.Package, r *reporter) []*source {
	sources, reporters := make([]*source, len(list)), make([]*reporter, len(list))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, p := range list {
		group.Go(func() error {
			own := &reporter{dir: r.dir}
			s := newSource(p, own)
			if s.usable = s.check(own); s.usable {
				s.checkTasks(own)
			}
			sources[i], reporters[i] = s, own
			return nil
		})
	}
	_ = group.Wait()
	for _, own := range reporters {
		r.list = append(r.list, own.list...)
	}
	return sources
}

// checkTasks turns what was found in a package into tasks, and reports what cannot be.
func (s *source) checkTasks(r *reporter) {
	s.tasks = slices.DeleteFunc(s.tasks, func(t *task) bool { return t.redeclared(r) })
	for _, t := range s.tasks {
		t.settle(r)
		t.checkSignature(r)
		t.checkTemplate(r)
		for _, p := range t.params {
			t.Params = append(t.Params, &p.Param)
		}
	}
	if s.client != nil {
		s.client.check(s, r)
	}
	if len(s.tasks) == 0 {
		return
	}
	if s.foreign() {
		r.report(otherModule, s.tasks[0].at(), s.PkgPath, s.module())
	}
	s.settleConstraint(r)
	s.checkIdentifiers(r)
}

// plan describes the files of a package.
func (s *source) plan(out *Output, r *reporter) []*templates.File {
	var usable []*task
	for _, t := range s.tasks {
		if !t.uncallable {
			usable = append(usable, t)
		}
	}
	if !s.usable || len(usable) == 0 {
		return nil
	}
	if all := s.tasks; len(usable) < len(all) { // nothing will be written, but all that is wrong is to come at once
		s.tasks = usable
		s.settleDependencies(r)
		s.tasks = all
		return nil
	}
	slices.SortFunc(s.tasks, func(a, b *task) int { return cmp.Compare(a.Prefix, b.Prefix) })
	handlers := &templates.File{
		Package: s.Name, Path: s.PkgPath, Module: s.module(), Dir: s.dir, Constraint: s.constraint,
		Callers: s.client == nil,
		Table:   &templates.Table{Dependencies: s.settleDependencies(r)},
		Taken:   taken(s.names()),
	}
	for _, t := range s.tasks {
		handlers.Tasks = append(handlers.Tasks, &t.Task)
	}
	out.Files[filepath.Join(s.dir, templates.FileName)] = nil
	files := []*templates.File{handlers}
	if s.client != nil && s.client.usable {
		handlers.Table.Client = &templates.Package{Path: s.client.path, Name: s.client.name}
		files = append(files, s.client.plan(s, handlers.Tasks))
		out.Files[filepath.Join(s.client.dir, templates.FileName)] = nil
	}
	return files
}

func taken[V any](names map[string]V) map[string]bool {
	set := make(map[string]bool, len(names))
	for name := range names {
		set[name] = true
	}
	return set
}

// checkReplaceable reports a file of another origin in the place of a generated one.
func checkReplaceable(path string, r *reporter) error {
	data, err := readRegular(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case errors.Is(err, errIrregular):
		r.report(foreignFile, positionOf(path), filepath.Base(path))
	case err != nil:
		return fmt.Errorf("read the file to be replaced: %w", err)
	case !replaceable(data):
		r.report(foreignFile, positionOf(path), filepath.Base(path))
	}
	return nil
}

// render makes the code of all files, on all processors: formatting is most of the work. What is known to lie on the
// disk already is taken from there.
func render(o Options, files []*templates.File, out *Output) error {
	known := openRendered(o.Cache)
	sources, recalled := make([][]byte, len(files)), make([]bool, len(files))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, f := range files {
		group.Go(func() (err error) {
			path := filepath.Join(f.Dir, templates.FileName)
			model, source := known.recall(path, f)
			if recalled[i] = source != nil; recalled[i] {
				sources[i] = source
				return nil
			}
			if sources[i], err = templates.Render(f); err == nil {
				known.remember(path, model, sources[i])
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for i, f := range files {
		out.Files[filepath.Join(f.Dir, templates.FileName)] = sources[i]
		if recalled[i] {
			out.Recalled++
		}
	}
	return nil
}
