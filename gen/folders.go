package gen

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
)

// unlisted returns the folders that match a pattern with "..." and hold Go files, but that the go command does not list,
// because it would build nothing there. What was generated for them may be left over, and directives in their files are
// not to be passed over in silence.
func unlisted(o Options, sources []*source) []string {
	listed := map[string]bool{}
	for _, s := range sources {
		listed[s.dir] = true
	}
	found := map[string]bool{}
	refused := func(rel string) bool { // as an import path, which the go command reports
		return rel != "" && module.CheckImportPath(filepath.ToSlash(rel)) != nil
	}
	for _, s := range reaches(o, sources) {
		s.walk("", func(rel string) {
			dir, real := filepath.Join(s.dir, rel), filepath.Join(s.real, rel)
			if !listed[dir] && !listed[real] && !refused(rel) && s.pattern.MatchString(path.Join(s.name, filepath.ToSlash(rel))) {
				found[dir] = true
			}
		})
	}
	return sortedKeys(found)
}

// reach is the part of the file system that a pattern with "..." is about.
type reach struct {
	dir     string         // where everything that it matches lies
	real    string         // the same without links
	name    string         // how the pattern calls it
	pattern *regexp.Regexp // of names
	ignored []string       // by go.mod, as paths relative to dir or, of folders anywhere, without a slash before
}

// reaches finds the folders of the patterns with "...". Import paths are looked for in the modules at hand.
func reaches(o Options, sources []*source) []reach {
	var list []reach
	add := func(dir, name, pattern string) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			list = append(list, reach{dir: dir, real: real, name: name, pattern: patternExpression(pattern), ignored: ignoredFolders(dir)})
		}
	}
	for _, pattern := range o.Patterns {
		pattern = filepath.ToSlash(pattern)
		if pattern == "all" || pattern == "work" {
			pattern = "..."
		}
		fixed, _, wild := strings.Cut(pattern, "...")
		if !wild {
			continue
		}
		head := fixed[:strings.LastIndex(fixed, "/")+1]
		if dir := filepath.FromSlash(head); strings.HasPrefix(head, "./") || strings.HasPrefix(head, "../") || filepath.IsAbs(dir) {
			if !filepath.IsAbs(dir) {
				dir = filepath.Join(o.Dir, dir)
			}
			dir = filepath.Clean(dir)
			name := filepath.ToSlash(dir)
			add(dir, name, strings.TrimSuffix(name, "/")+"/"+pattern[len(head):])
			continue
		}
		for _, m := range mainModules(o, sources, head) {
			if strings.HasPrefix(m.path+"/", head) {
				add(m.dir, m.path, pattern)
			} else if rest, ok := strings.CutPrefix(head, m.path+"/"); ok {
				add(filepath.Join(m.dir, filepath.FromSlash(rest)), path.Clean(head), pattern)
			}
		}
	}
	return list
}

// patternExpression is a pattern as the go command reads it: x/... matches x, too.
func patternExpression(pattern string) *regexp.Regexp {
	e := strings.ReplaceAll(regexp.QuoteMeta(pattern), `\.\.\.`, `.*`)
	if rest, ok := strings.CutSuffix(e, `/.*`); ok {
		e = rest + `(/.*)?`
	}
	return regexp.MustCompile(`^` + e + `$`)
}

// walk calls visit for every folder with Go files, as a path relative to the reach's. It leaves out what the go command
// leaves out of "...".
func (s reach) walk(rel string, visit func(rel string)) {
	entries, err := os.ReadDir(filepath.Join(s.dir, rel))
	if err != nil {
		return // what cannot be read is not read by the go command either
	}
	isModule := func(e os.DirEntry) bool { return e.Name() == "go.mod" && !e.IsDir() }
	if rel != "" && slices.ContainsFunc(entries, isModule) {
		return
	}
	if slices.ContainsFunc(entries, func(e os.DirEntry) bool { return !e.IsDir() && strings.HasSuffix(e.Name(), ".go") }) {
		visit(rel)
	}
	for _, e := range entries {
		name := e.Name()
		if !e.IsDir() || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") ||
			name == "testdata" || name == "vendor" || name == "node_modules" {
			continue
		}
		if below := filepath.Join(rel, name); !s.ignores(below) {
			s.walk(below, visit)
		}
	}
}

// ignores holds for folders that go.mod takes out of "...".
func (s reach) ignores(rel string) bool {
	if len(s.ignored) == 0 {
		return false
	}
	rel = "/" + filepath.ToSlash(rel)
	return slices.ContainsFunc(s.ignored, func(path string) bool {
		return rel == path || !strings.HasPrefix(path, "/") && strings.HasSuffix(rel, "/"+path)
	})
}

// ignoredFolders reads the ignore lines of the go.mod that dir belongs to.
func ignoredFolders(dir string) []string {
	root, data := moduleFile(dir)
	if data == nil {
		return nil
	}
	file, err := modfile.ParseLax("go.mod", data, nil)
	if err != nil {
		return nil
	}
	var list []string
	for _, ignore := range file.Ignore {
		fixed, ok := strings.CutPrefix(ignore.Path, "./")
		if !ok {
			list = append(list, path.Clean(ignore.Path))
			continue
		}
		if rel, err := filepath.Rel(dir, filepath.Join(root, filepath.FromSlash(fixed))); err == nil {
			list = append(list, "/"+filepath.ToSlash(rel))
		}
	}
	return list
}

// moduleFile returns the content of the go.mod that dir belongs to and the folder that it lies in. It is nil where there
// is none.
func moduleFile(dir string) (root string, data []byte) {
	for {
		if data, err := os.ReadFile(filepath.Join(dir, "go.mod")); err == nil {
			return dir, data
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", nil
		}
		dir = parent
	}
}

// mainModule is one that may be edited.
type mainModule struct{ path, dir string }

// mainModules returns the modules that were loaded or, where none of them has packages below head, all that the go
// command knows.
func mainModules(o Options, sources []*source, head string) []mainModule {
	var list []mainModule
	for _, s := range sources {
		if s.Module != nil && s.Module.Main && s.Module.Dir != "" {
			list = append(list, mainModule{s.Module.Path, s.Module.Dir})
		}
	}
	slices.SortFunc(list, func(a, b mainModule) int { return strings.Compare(a.path, b.path) })
	list = slices.Compact(list)
	if slices.ContainsFunc(list, func(m mainModule) bool {
		return strings.HasPrefix(m.path+"/", head) || strings.HasPrefix(head, m.path+"/")
	}) {
		return list
	}
	cmd := exec.Command("go", "list", "-m", "-f", "{{.Path}}\t{{.Dir}}")
	cmd.Dir, cmd.Env = o.Dir, o.Env
	out, err := cmd.Output()
	if err != nil {
		return list // outside of modules there is nothing that a path could name
	}
	for line := range strings.Lines(string(out)) {
		if path, dir, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
			list = append(list, mainModule{path, dir})
		}
	}
	return list
}
