package gen

import (
	"go/ast"
	"go/token"
	"regexp"
	"strings"
	"unicode"
)

const (
	prefix           = "//smallage:"
	taskDirective    = prefix + "task"
	packageDirective = prefix + "package"
)

var directiveNames = []string{"task", "package"}

// directive returns what follows the directive's name in a comment, where the comment is that directive.
func directive(text, name string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(text, name)
	if !ok || rest != "" && !isBlank(rest[0]) {
		return "", false
	}
	return rest, true
}

// scanComment reports a comment that is a directive out of place, or is meant as one and is none. Prose is left alone.
// Of a function without a directive it looks at the doc comment more closely: there a mistake would lose a task.
func (s *source) scanComment(f *file, i int, group *ast.CommentGroup, bare bool, r *reporter) {
	comment := group.List[i]
	text, at := comment.Text, s.at(comment.Pos())
	if rest, ok := strings.CutPrefix(text, prefix); ok {
		s.scanMisplaced(f, comment, group, rest, r)
		return
	}
	line, _, several := strings.Cut(text, "\n")
	how := byForm
	if bare && s.beginsParagraph(group, i) {
		how = byPlace
	}
	l, ok := alike(strings.TrimRight(line, " \t\r"), how)
	if !ok {
		l, ok = behindAnother(line)
	}
	switch {
	case ok:
		report(l, at, r)
	case bare && strings.HasPrefix(text, "/*"):
		s.scanBlock(comment, several, r)
	}
}

// report says what a line is instead of a directive.
func report(l likeness, at token.Position, r *reporter) {
	switch {
	case l.exact:
		r.report(notADirective, at, show(l.shown), l.target)
	case l.target != "":
		r.report(misspeltDirective, at, showASCII(l.shown), ", did you mean "+prefix+l.target+"?")
	default:
		r.report(misspeltDirective, at, showASCII(l.shown), "")
	}
}

// scanMisplaced reports a comment that begins with //smallage: but does not stand where it would count.
func (s *source) scanMisplaced(f *file, comment *ast.Comment, group *ast.CommentGroup, rest string, r *reporter) {
	at := s.at(comment.Pos())
	name := rest
	if i := strings.IndexAny(rest, " \t\r"); i >= 0 {
		name = rest[:i]
	}
	if name == "" {
		if l, ok := alike(comment.Text, byForm); ok {
			report(l, at, r)
			return
		}
	}
	switch name {
	case "task":
		if f.test {
			r.report(testFile, at, taskDirective)
			return
		}
		r.report(misplacedTask, at, s.place(f, comment, group, true))
	case "package":
		r.report(misplacedPackage, at, s.place(f, comment, group, false))
	default:
		best := nearest(leadingWord(name), directiveNames)
		if key, _, ok := strings.Cut(name, "="); ok && keys[key].set != nil {
			best = "task"
		}
		report(likeness{shown: prefix + name, target: best}, at, r)
	}
}

// beginsParagraph holds for a line comment that is the first of its group, or follows an empty one.
func (s *source) beginsParagraph(group *ast.CommentGroup, i int) bool {
	return strings.HasPrefix(group.List[i].Text, "//") && (i == 0 || strings.TrimSpace(group.List[i-1].Text) == "//" ||
		strings.HasPrefix(group.List[i-1].Text, "/*"))
}

// another is how another tool's directive begins. go:generate takes the rest of its line as a command.
var another = regexp.MustCompile(`^//([a-z0-9]+:[a-z0-9]|nolint\b|export |extern |#nosec\b)`)

// behindAnother finds what is meant as a directive, but stands on the line of another tool's.
func behindAnother(line string) (l likeness, ok bool) {
	if strings.HasPrefix(line, "// ") || !another.MatchString(line) || strings.HasPrefix(line, "//go:generate ") {
		return l, false
	}
	for from := 2; ; {
		next := strings.Index(line[from:], "//")
		if next < 0 {
			return l, false
		}
		from += next
		if l, ok = alike(strings.TrimRight(line[from:], " \t\r"), byWords); ok {
			l.shown = line[:from] + l.shown
			return l, true
		}
		from += 2
	}
}

// scanBlock looks at the lines of a block comment, which can hold no directive.
func (s *source) scanBlock(comment *ast.Comment, several bool, r *reporter) {
	offset := len("/*")
	for line := range strings.Lines(strings.TrimSuffix(comment.Text, "*/")[offset:]) {
		words := strings.TrimLeft(line, " \t")
		if several {
			words = strings.TrimLeft(words, "* \t")
		}
		begin := offset + len(line) - len(words)
		offset += len(line)
		if !strings.HasPrefix(words, "//") {
			words = "// " + words
		}
		if l, ok := alike(strings.TrimRight(words, " \t\r\n"), byForm); ok {
			l.exact = l.exact || strings.HasPrefix(words, prefix) && l.target != ""
			l.shown = strings.TrimPrefix(l.shown, "// ")
			report(l, s.at(comment.Pos()+token.Pos(begin)), r)
		}
	}
}

// leadingWord is the first letters in a text: task, for task,queue=a.
func leadingWord(s string) string {
	s = strings.TrimLeftFunc(s, func(r rune) bool { return !unicode.IsLetter(r) })
	if i := strings.IndexFunc(s, func(r rune) bool { return !unicode.IsLetter(r) }); i >= 0 {
		return s[:i]
	}
	return s
}

// place says where a directive stands that does not stand where it must.
func (s *source) place(f *file, comment *ast.Comment, group *ast.CommentGroup, task bool) string {
	if group == f.syntax.Doc {
		return "in the package's doc comment"
	}
	if s.at(comment.Pos()).Line == s.at(f.syntax.Package).Line {
		return "behind the package clause"
	}
	if comment.End() < f.syntax.Package {
		return "above the package's doc comment or apart from the package clause"
	}
	for _, decl := range f.syntax.Decls {
		from := decl.Pos()
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Doc != nil {
				from = d.Doc.Pos()
			}
		case *ast.GenDecl:
			if d.Doc != nil {
				from = d.Doc.Pos()
			}
		}
		if comment.Pos() >= decl.End() {
			if s.at(comment.Pos()).Line == s.at(decl.End()).Line {
				return "behind a declaration, on its last line"
			}
			continue
		}
		if comment.End() <= from {
			return above(decl)
		}
		return within(decl, task)
	}
	return "at the end of the file, with no declaration after it"
}

// above describes a directive that stands alone above a declaration.
func above(decl ast.Decl) string {
	if fn, ok := decl.(*ast.FuncDecl); ok {
		return "separated by a blank line from func " + fn.Name.Name
	}
	return "above a declaration of " + keyword(decl)
}

// within describes a directive in the comment of a declaration, or inside of it.
func within(decl ast.Decl, task bool) string {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if !task {
			return "on func " + d.Name.Name
		}
		return "inside of func " + d.Name.Name
	default:
		return "on a declaration of " + keyword(decl)
	}
}

// keyword says what a declaration declares.
func keyword(decl ast.Decl) string {
	if d, ok := decl.(*ast.GenDecl); ok {
		switch d.Tok {
		case token.IMPORT:
			return "imports"
		case token.CONST:
			return "constants"
		case token.VAR:
			return "variables"
		}
		return "types"
	}
	return "a function"
}
