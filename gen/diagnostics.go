package gen

import (
	"cmp"
	"fmt"
	"go/token"
	"path/filepath"
	"slices"
)

// Diagnostic is one thing that is wrong with the packages given.
type Diagnostic struct {
	Position token.Position // its Filename is absolute; zero where there is no place to point at
	Kind     *Kind
	Text     string // what is wrong; what to write instead
}

// String returns the diagnostic as one line, with the whole path of its file.
func (d Diagnostic) String() string { return d.Relative("") }

// Relative returns the diagnostic as one line, with its file's path relative to dir where that is shorter.
func (d Diagnostic) Relative(dir string) string {
	text := fmt.Sprintf("%s [%s]", d.Text, d.Kind.Name)
	if !d.Position.IsValid() {
		if d.Position.Filename != "" {
			return Shorter(dir, d.Position.Filename) + ": " + text
		}
		return text
	}
	return fmt.Sprintf("%s: %s", relative(dir, d.Position), text)
}

func relative(dir string, p token.Position) string {
	p.Filename = Shorter(dir, p.Filename)
	return p.String()
}

// Shorter returns path relative to dir, unless that is longer.
func Shorter(dir, path string) string {
	if dir == "" {
		return path
	}
	rel, err := filepath.Rel(dir, path)
	if err != nil || len(rel) > len(path) {
		return path
	}
	return rel
}

// reporter collects diagnostics.
type reporter struct {
	dir  string // positions inside of texts are relative to it
	list []Diagnostic
}

// report adds a diagnostic. Positions among the arguments are written relative to the reporter's folder.
func (r *reporter) report(kind *Kind, at token.Position, args ...any) {
	for i, arg := range args {
		if p, ok := arg.(token.Position); ok {
			args[i] = relative(r.dir, p)
		}
	}
	r.list = append(r.list, Diagnostic{Position: at, Kind: kind, Text: fmt.Sprintf(kind.Format, args...)})
}

// sorted returns the diagnostics by position, each once.
func sorted(list []Diagnostic) []Diagnostic {
	slices.SortStableFunc(list, func(a, b Diagnostic) int {
		return cmp.Or(
			cmp.Compare(a.Position.Filename, b.Position.Filename),
			cmp.Compare(a.Position.Line, b.Position.Line),
			cmp.Compare(a.Position.Column, b.Position.Column),
			cmp.Compare(a.Text, b.Text),
		)
	})
	return slices.CompactFunc(list, func(a, b Diagnostic) bool { return a.Position == b.Position && a.Text == b.Text })
}

// positionOf is a whole file.
func positionOf(path string) token.Position { return token.Position{Filename: path} }
