package gen

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/smallage/smallage/templates"
)

// orphans returns the generated files that nothing asks for any more: of packages that lost their last task, of folders
// that lost their sources, and of clients that were moved. Only files with our header are ever named.
func orphans(o Options, sources []*source, files map[string][]byte) []string {
	found := map[string]bool{}
	consider := func(path string) {
		if _, needed := files[path]; needed {
			return
		}
		data, err := os.ReadFile(path)
		if err != nil || !isOurs(data) {
			return
		}
		if owner := clientOf(data); owner == "" || !claimed(owner, path, sources) {
			found[path] = true
		}
	}
	loaded := map[string]bool{}
	for _, s := range sources {
		if s.dir == "" || s.foreign() {
			continue
		}
		loaded[s.dir] = true
		consider(filepath.Join(s.dir, templates.FileName))
		for _, path := range formerClients(s) {
			consider(path)
		}
	}
	for _, root := range patternRoots(o) {
		for _, dir := range abandoned(root, loaded) {
			consider(filepath.Join(dir, templates.FileName))
		}
	}
	return sortedKeys(found)
}

// claimed holds for a client file whose owner still asks for it, or whose owner this run has not seen. The owner's own
// run, or one of all packages, then removes it.
func claimed(owner, path string, sources []*source) bool {
	for _, s := range sources {
		if s.PkgPath == owner {
			return s.client != nil && filepath.Join(s.client.dir, templates.FileName) == path
		}
	}
	return ownerExists(owner, path)
}

// ownerExists looks for the folder of an owner outside of the run: the client's path below the module tells where the
// module is, and with it the owner.
func ownerExists(owner, path string) bool {
	dir := filepath.Dir(path)
	for {
		if data, err := os.ReadFile(filepath.Join(dir, "go.mod")); err == nil {
			module := modulePath(data)
			rest, ok := strings.CutPrefix(owner, module)
			if !ok {
				return true
			}
			return hasSources(filepath.Join(dir, filepath.FromSlash(rest)))
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return true
		}
		dir = parent
	}
}

// modulePath reads the module line of a go.mod.
func modulePath(data []byte) string {
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "module "); ok {
			rest, _, _ = strings.Cut(rest, "//")
			rest = strings.TrimSpace(rest)
			if unquoted, err := strconv.Unquote(rest); err == nil {
				return unquoted
			}
			return rest
		}
	}
	return ""
}

// formerClients returns the files of clients that the package's last generated file imports.
func formerClients(s *source) []string {
	if s.Module == nil || s.Module.Dir == "" {
		return nil
	}
	data, err := os.ReadFile(filepath.Join(s.dir, templates.FileName))
	if err != nil || !isOurs(data) {
		return nil
	}
	syntax, _ := parser.ParseFile(token.NewFileSet(), "", data, parser.ImportsOnly)
	if syntax == nil {
		return nil
	}
	var files []string
	for _, spec := range syntax.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		rest, ok := strings.CutPrefix(path, s.Module.Path+"/")
		if !ok {
			continue
		}
		file := filepath.Join(s.Module.Dir, filepath.FromSlash(rest), templates.FileName)
		if data, err := os.ReadFile(file); err == nil && clientOf(data) == s.PkgPath {
			files = append(files, file)
		}
	}
	return files
}

// patternRoots returns the folders of the patterns that end in "...".
func patternRoots(o Options) []string {
	var roots []string
	for _, pattern := range o.Patterns {
		root, ok := strings.CutSuffix(filepath.ToSlash(pattern), "...")
		if !ok || !strings.HasPrefix(root, ".") && !filepath.IsAbs(root) || strings.Contains(root, "...") {
			continue
		}
		dir := filepath.FromSlash(strings.TrimSuffix(root, "/"))
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(o.Dir, dir)
		}
		roots = append(roots, dir)
	}
	return roots
}

// abandoned returns the folders below root that hold a generated file and no source that it could be for. The go command
// does not list them, because nothing is left to build.
func abandoned(root string, loaded map[string]bool) []string {
	var dirs []string
	_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what cannot be read holds nothing that could be removed
		}
		if entry.IsDir() {
			return descend(root, path, entry.Name())
		}
		if entry.Name() == templates.FileName && !loaded[filepath.Dir(path)] && !hasSources(filepath.Dir(path)) {
			dirs = append(dirs, filepath.Dir(path))
		}
		return nil
	})
	return dirs
}

// descend leaves out the folders that the go command leaves out of "...".
func descend(root, path, name string) error {
	if path == root {
		return nil
	}
	if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || slices.Contains([]string{"testdata", "vendor", "node_modules"}, name) {
		return filepath.SkipDir
	}
	if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil {
		return filepath.SkipDir
	}
	return nil
}

// hasSources holds for a folder with a Go file that is neither a test nor ours.
func hasSources(dir string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, entry := range entries {
		name := entry.Name()
		if entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !isOurs(data) {
			return true
		}
	}
	return false
}
