package gen

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/smallage/smallage/templates"
)

// orphans returns the generated files that nothing asks for any more: of packages that lost their last task, of folders
// that lost their sources, and of clients that were moved. Only files with our header are ever named.
func orphans(sources []*source, unlisted []string, files map[string][]byte) []string {
	found := map[string]bool{}
	consider := func(path string) {
		if _, needed := files[path]; needed {
			return
		}
		data, err := readRegular(path)
		if err != nil || !isOurs(data) {
			return
		}
		if owner := clientOf(data); owner == "" || !claimed(owner, path, sources) {
			found[path] = true
		}
	}
	for _, s := range sources {
		if s.dir == "" || s.foreign() {
			continue
		}
		consider(filepath.Join(s.dir, templates.FileName))
		for _, path := range formerClients(s) {
			consider(path)
		}
	}
	for _, dir := range unlisted {
		if !hasSources(dir) {
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
	root, data := moduleFile(filepath.Dir(path))
	rest, ok := strings.CutPrefix(owner, modfile.ModulePath(data))
	return data == nil || !ok || hasSources(filepath.Join(root, filepath.FromSlash(rest)))
}

// formerClients returns the files of clients that the package's last generated file imports.
func formerClients(s *source) []string {
	if s.Module == nil || s.Module.Dir == "" {
		return nil
	}
	data, err := readRegular(filepath.Join(s.dir, templates.FileName))
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
		if data, err := readRegular(file); err == nil && clientOf(data) == s.PkgPath {
			files = append(files, file)
		}
	}
	return files
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
		data, err := readRegular(filepath.Join(dir, name))
		if err != nil || !isOurs(data) {
			return true
		}
	}
	return false
}
