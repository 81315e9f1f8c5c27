package gen

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// Tag is the build tag that takes generated files out of a load, stale or broken as they may be.
const Tag = "smallagegen"

// Options are what a run is given.
type Options struct {
	Dir      string   // where patterns are resolved and the go command runs; the current folder where empty
	Patterns []string // packages, as the go command names them; "." where empty
	Tags     []string // build tags, in addition to those of GOFLAGS
	Env      []string // os.Environ() where nil
	Cache    string   // where to remember what was rendered, such as CacheFolder(); nothing is remembered where empty

	GoGenerate bool // run by go generate, which is still to read files that it has listed
	Check      bool // nothing will be written
}

const loadMode = packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
	packages.NeedTypes | packages.NeedTypesSizes | packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedModule

// load asks for all packages at once, with types of their imports from export data: reading the imports from source, or
// one load per package, would take many times as long.
func load(ctx context.Context, o Options) ([]*packages.Package, error) {
	tags, err := flagTags(ctx, o)
	if err != nil {
		return nil, err
	}
	cfg := &packages.Config{
		Context:    ctx,
		Mode:       loadMode,
		Dir:        o.Dir,
		Env:        o.Env,
		Fset:       token.NewFileSet(),
		BuildFlags: []string{"-tags=" + strings.Join(append(append(tags, o.Tags...), Tag), ",")},
	}
	for _, pattern := range o.Patterns {
		if strings.HasSuffix(pattern, ".go") || strings.HasPrefix(pattern, "file=") {
			return nil, fmt.Errorf("%s is a file; name the folder of its package, such as ./tasks, or ./... for all", pattern)
		}
	}
	list, err := packages.Load(cfg, o.Patterns...)
	if overlay := cutOff(list); overlay != nil {
		cfg.Overlay = overlay
		list, err = packages.Load(cfg, o.Patterns...)
	}
	if err != nil {
		if _, said, ok := strings.Cut(err.Error(), "stderr: "); ok { // by the go command
			err = errors.New(strings.TrimSpace(said))
		}
		return nil, fmt.Errorf("load %s: %w", strings.Join(o.Patterns, " "), err)
	}
	return list, nil
}

// flagTags returns the tags of GOFLAGS, wherever it is set: a -tags on the command line replaces them.
func flagTags(ctx context.Context, o Options) ([]string, error) {
	cmd := exec.CommandContext(ctx, "go", "env", "GOFLAGS")
	cmd.Dir = o.Dir
	cmd.Env = o.Env
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	out, err := cmd.Output()
	if err != nil {
		if failed, ok := err.(*exec.ExitError); ok && len(failed.Stderr) > 0 {
			return nil, fmt.Errorf("go env GOFLAGS: %s", strings.TrimSpace(string(failed.Stderr)))
		}
		return nil, fmt.Errorf("go env GOFLAGS: %w; smallagegen needs the go command on PATH", err)
	}
	var tags []string
	for _, flag := range splitFlags(strings.TrimSpace(string(out))) {
		name, value, _ := strings.Cut(strings.TrimLeft(flag, "-"), "=")
		if name == "tags" && strings.HasPrefix(flag, "-") {
			tags = strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' })
		}
	}
	return tags, nil
}

// splitFlags splits GOFLAGS as the go command does: at spaces, but not inside of an element in quotes.
func splitFlags(s string) []string {
	var flags []string
	for {
		s = strings.TrimLeft(s, " \t\r\n")
		if s == "" {
			return flags
		}
		if quote := s[0]; quote == '\'' || quote == '"' {
			rest := s[1:]
			end := strings.IndexByte(rest, quote)
			if end < 0 {
				end = len(rest)
			}
			flags = append(flags, rest[:end])
			s = rest[min(end+1, len(rest)):]
			continue
		}
		end := strings.IndexAny(s, " \t\r\n")
		if end < 0 {
			end = len(s)
		}
		flags = append(flags, s[:end])
		s = s[end:]
	}
}

// source is one loaded package.
type source struct {
	*packages.Package
	dir        string
	files      []*file
	tasks      []*task
	client     *client
	constraint string     // shared by the files of all tasks
	usable     bool       // it was loaded well enough to be checked
	header     bool       // there is a file of ours in the folder
	begun      bool       // and it has nothing but the beginning of its header
	elsewhere  *elsewhere // of a folder that is built under other constraints only; else nil
}

// file is one Go file of a package's folder.
type file struct {
	path       string
	syntax     *ast.File
	loaded     bool // it is part of the build
	test       bool
	cgo        bool // it was loaded as cgo has rewritten it
	constraint string
}

// at returns the position of pos in the package's sources. What cgo has made of a file can come out of the build cache
// with the path that another copy of the package had; its name is right.
func (s *source) at(pos token.Pos) token.Position {
	p := s.Fset.Position(pos)
	if p.Filename == "" || filepath.Dir(p.Filename) == s.dir || slices.Contains(s.GoFiles, s.Fset.File(pos).Name()) {
		return p
	}
	if here := filepath.Join(s.dir, filepath.Base(p.Filename)); slices.Contains(s.GoFiles, here) {
		p.Filename = here
	}
	return p
}

// module is the path of the package's module, or "".
func (s *source) module() string {
	if s.Module == nil {
		return ""
	}
	return s.Module.Path
}

// foreign holds for packages of modules that the go command would not let anyone edit from here.
func (s *source) foreign() bool { return s.Module != nil && !s.Module.Main }

// check reports what makes a package unusable, and returns false where there is such a thing. Type errors are no such
// thing: callers of names to be generated have them on every first run.
func (s *source) check(r *reporter) bool {
	usable := true
	if s.header && len(s.files) == 0 {
		return false // there is only our own file, whatever state it is in: a client's, or an orphan
	}
	unparsed := map[token.Position]string{}
	for _, e := range s.Errors {
		if at := parsePosition(e.Pos); e.Kind == packages.ParseError && unparsed[at] == "" {
			unparsed[at] = e.Msg
		}
	}
	for _, e := range s.Errors {
		if e.Kind == packages.ParseError || e.Kind == packages.TypeError || !s.fatal(e) {
			continue
		}
		if at := absolute(parsePosition(e.Pos), r.dir); unparsed[at] != "" {
			unparsed[at] = oneLine(e.Msg) // of the several at one place, the go command names the first
			continue
		}
		s.reportFailure(e, r)
		usable = false
	}
	for at, text := range unparsed {
		r.report(syntaxError, at, text)
		usable = false
	}
	return usable && s.Types != nil && s.TypesInfo != nil
}

// fatal tells errors of the go command that leave a package incomplete from those about its bodies. "# pkg …" is the
// compiler's, which repeats the type checker or speaks of bodies, too; a pattern of go:embed may match files that are yet to be made; an
// import cycle matters only where it spoils a signature, and is reported there or by importCycles.
func (s *source) fatal(e packages.Error) bool {
	switch {
	case len(s.Syntax) == 0:
		return true
	case strings.HasPrefix(e.Msg, "# "):
		return false
	}
	return !strings.HasPrefix(e.Msg, "pattern ") && !strings.HasPrefix(e.Msg, cyclePrefix)
}

const cyclePrefix = "import cycle not allowed"

// importCycles reports the cycles that packages with tasks are in. One through a client package may be due to the
// client's old file, and is left to the compiler.
func importCycles(sources []*source, r *reporter) {
	for _, s := range sources {
		if len(s.tasks) == 0 {
			continue
		}
		for _, e := range s.Errors {
			if strings.HasPrefix(e.Msg, cyclePrefix) && !slices.ContainsFunc(sources, func(other *source) bool {
				return other.client != nil && strings.Contains(e.Msg+" ", other.client.path+" ")
			}) {
				r.report(importCycle, s.at(s.tasks[0].decl.Name.Pos()), strings.TrimPrefix(oneLine(e.Msg), cyclePrefix+": "))
			}
		}
	}
}

func oneLine(msg string) string {
	lines := strings.FieldsFunc(msg, func(r rune) bool { return r == '\n' })
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.ReplaceAll(strings.Join(lines, ": "), ":: ", ": ")
}

// absolute completes a path that the go command has shortened.
func absolute(p token.Position, dir string) token.Position {
	if p.Filename != "" && !filepath.IsAbs(p.Filename) {
		p.Filename = filepath.Join(dir, p.Filename)
	}
	return p
}

// parsePosition reads file:line:column, as package packages gives it.
func parsePosition(s string) token.Position {
	var p token.Position
	if s == "" || s == "-" {
		return p
	}
	parts := strings.Split(s, ":")
	numbers := []int{}
	for len(parts) > 1 && len(numbers) < 2 {
		var n int
		if _, err := fmt.Sscanf(parts[len(parts)-1], "%d", &n); err != nil {
			break
		}
		numbers = append(numbers, n)
		parts = parts[:len(parts)-1]
	}
	slices.Reverse(numbers)
	p.Filename = strings.Join(parts, ":")
	if len(numbers) > 0 {
		p.Line = numbers[0]
	}
	if len(numbers) > 1 {
		p.Column = numbers[1]
	}
	return p
}

// typeError returns the first type error between two positions, or "". A second line of an error elsewhere is none.
func (s *source) typeError(from, to token.Pos) string {
	for _, e := range s.TypeErrors {
		if from <= e.Pos && e.Pos <= to && !strings.HasPrefix(e.Msg, "\t") {
			return strings.TrimPrefix(e.Msg, "invalid syntax tree: ")
		}
	}
	return ""
}
