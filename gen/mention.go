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

// likeness is how a comment begins that may be meant as a directive: perhaps a space, a word like smallage, something
// between, a word like task, and the rest of the line.
var likeness = regexp.MustCompile(`^(//|/\*)([ \t]*)([\pL]+)([ \t]*[:./_-]+[ \t]*|[ \t]+)([\pL\d]+)(.*)`)

// keyish is a word that has the form of a directive's.
var keyish = regexp.MustCompile(`^[\pL][\pL\d_-]*=`)

// scanComment reports a comment that is a directive out of place, or is meant as one and is none. Prose is left alone.
func (s *source) scanComment(f *file, comment *ast.Comment, group *ast.CommentGroup, r *reporter) {
	text, at := comment.Text, s.at(comment.Pos())
	if rest, ok := strings.CutPrefix(text, prefix); ok {
		name := rest
		if i := strings.IndexAny(rest, " \t\r"); i >= 0 {
			name = rest[:i]
		}
		switch {
		case name == "task" && f.test:
			r.report(testFile, at, taskDirective)
		case name == "task":
			r.report(misplacedTask, at, s.place(f, comment, group, true))
		case name == "package":
			r.report(misplacedPackage, at, s.place(f, comment, group, false))
		case name == "" && meant(strings.TrimSpace(rest)) != "":
			r.report(notADirective, at, show(upToName(text)), meant(strings.TrimSpace(rest)))
		default:
			suggestion := ""
			if best := nearest(leadingWord(name), directiveNames); best != "" {
				suggestion = ", did you mean " + prefix + best + "?"
			}
			r.report(misspeltDirective, at, show(prefix+name), suggestion)
		}
		return
	}
	line, _, _ := strings.Cut(text, "\n")
	m := likeness.FindStringSubmatch(strings.TrimRight(line, " \t\r"))
	if m == nil {
		return
	}
	opening, space, tool, between, name, rest := m[1], m[2], m[3], m[4], m[5], m[6]
	if opening == "/*" {
		rest = strings.TrimSuffix(rest, "*/")
	}
	target := nearest(name, directiveNames)
	if nearest(tool, []string{"smallage"}) == "" || target == "" || !intended(space, between, name == target, rest) {
		return
	}
	if strings.EqualFold(tool, "smallage") && strings.EqualFold(name, target) && tool == "smallage" && name == target {
		r.report(notADirective, at, show(upToName(line)), target)
		return
	}
	r.report(misspeltDirective, at, show(upToName(line)), ", did you mean "+prefix+target+"?")
}

// leadingWord is the letters that a text begins with: task, for task,queue=a.
func leadingWord(s string) string {
	if i := strings.IndexFunc(s, func(r rune) bool { return !unicode.IsLetter(r) }); i >= 0 {
		return s[:i]
	}
	return s
}

// meant returns the directive that the text after a colon names, if it does.
func meant(text string) string {
	name, rest, _ := strings.Cut(text, " ")
	for _, d := range directiveNames {
		if name == d && intended("", ":", true, " "+rest) {
			return d
		}
	}
	return ""
}

// intended tells a directive with a mistake from prose: by words of the form key=value after it, or by there being
// nothing else on the line.
func intended(space, between string, exact bool, rest string) bool {
	words := strings.Fields(rest)
	if len(words) > 0 {
		if rest[0] != ' ' && rest[0] != '\t' {
			return false // one longer word
		}
		if keyish.MatchString(words[0]) {
			return true
		}
		_, known := keys[words[0]]
		return known && strings.Contains(between, ":")
	}
	tight := space == "" && strings.TrimSpace(between) == between
	return tight || exact && strings.Contains(between, ":")
}

// upToName is as much of a comment as a message shows: its beginning, to the end of the word that a directive's name is
// or would be.
func upToName(line string) string {
	line, _, _ = strings.Cut(line, "\n")
	if m := likeness.FindStringSubmatchIndex(line); m != nil {
		return strings.TrimSpace(line[:m[11]])
	}
	return strings.TrimSpace(line)
}

// place says where a directive stands that does not stand where it must.
func (s *source) place(f *file, comment *ast.Comment, group *ast.CommentGroup, task bool) string {
	if group == f.syntax.Doc {
		return "in the package's doc comment"
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
