package gen

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/smallage/smallage/templates"
)

// begun holds for a file that has no more than the beginning of our header: it is empty, or its writing was cut off.
// Nothing is lost with it.
func begun(data []byte) bool {
	return strings.HasPrefix(templates.Header, strings.TrimSpace(strings.TrimPrefix(string(data), "\ufeff")))
}

// replaceable holds for what a run may overwrite.
func replaceable(data []byte) bool { return isOurs(data) || begun(data) }

// cutOff returns generated files that keep the go command from loading their packages, because they were cut off before
// the line that takes them out of the load, or are links to nothing, each with what is to be read in its place.
func cutOff(list []*packages.Package) map[string][]byte {
	var overlay map[string][]byte
	for _, p := range list {
		if p.Dir == "" || !slices.ContainsFunc(p.Errors, func(e packages.Error) bool { return e.Kind != packages.TypeError }) {
			continue
		}
		path := filepath.Join(p.Dir, templates.FileName)
		broken := leadsNowhere(path)
		if data, err := readRegular(path); err == nil && replaceable(data) {
			_, err := parser.ParseFile(token.NewFileSet(), path, data, parser.SkipObjectResolution)
			broken = err != nil
		}
		if broken {
			if overlay == nil {
				overlay = map[string][]byte{}
			}
			overlay[path] = []byte("//go:build ignore\n\npackage p\n")
		}
	}
	return overlay
}

// reportBegun reports files that would be replaced if anything were generated in their place, and that nobody can build.
func reportBegun(sources []*source, r *reporter) {
	for _, s := range sources {
		if s.begun && len(s.tasks) == 0 && !slices.ContainsFunc(sources, func(o *source) bool { return o.client != nil && o.client.dir == s.dir }) {
			at := token.Position{Filename: filepath.Join(s.dir, templates.FileName), Line: 1, Column: 1}
			r.report(emptyFile, at, templates.FileName)
		}
	}
}
