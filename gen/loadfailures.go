package gen

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// reportFailure reports why the go command could not load the package.
func (s *source) reportFailure(e packages.Error, r *reporter) {
	at, text := absolute(parsePosition(e.Pos), r.dir), oneLine(e.Msg)
	if at.Filename == "" {
		if where, rest, ok := strings.Cut(text, ": "); ok {
			if p := parsePosition(where); p.IsValid() {
				at, text = absolute(p, r.dir), rest
			}
		}
	}
	if at.Filename == "" && s.dir != "" {
		at = positionOf(s.dir)
		text = strings.ReplaceAll(text, " in "+s.dir, "")
	}
	instead := "name a folder with Go files, such as ./tasks, or ./... for all below"
	switch {
	case strings.HasPrefix(text, "build constraints exclude all Go files"):
		if slices.ContainsFunc(r.list, func(d Diagnostic) bool { return d.Kind == leftOut && filepath.Dir(d.Position.Filename) == s.dir }) {
			return // said of the file
		}
		instead = "generate where they hold (GOOS, GOARCH, CGO_ENABLED, -tags)"
	case strings.HasPrefix(text, "malformed import path "):
		instead = "rename the folder: in an import path, names are of ASCII letters, digits and - . _ ~"
	case strings.HasPrefix(text, "open "):
		instead = "make the file one that can be read"
	case strings.HasPrefix(text, "found packages "):
		instead = "keep one package in a folder"
	case at.IsValid():
		instead = "correct that first"
	}
	r.report(loadFailed, at, text, instead)
}

// emptyLoad says why a load found no package, where that is a failure. It asks the go command once more, whose failure may
// have been taken for an empty answer: there is no go.mod, say, or GOOS does not exist.
func emptyLoad(ctx context.Context, o Options) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"list", "-e", "-export", "--"}, o.Patterns...)...)
	cmd.Dir, cmd.Env = o.Dir, o.Env
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil && said.Len() > 0 {
		return fmt.Errorf("load %s: %s", strings.Join(o.Patterns, " "), strings.TrimSpace(said.String()))
	}
	return nil
}
