package gen

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// likeness is a comment's line that reads like a directive.
type likeness struct {
	shown  string // as much of the line as a message shows
	target string // the directive that is meant, or ""
	exact  bool   // the words are right; only the place of blanks, or the kind of comment, is not
}

// certainty is how much a line has to say before it counts as a directive with a mistake.
type certainty int

const (
	byForm  certainty = iota // its form suffices: //smalage:task, whatever follows
	byWords                  // it must end, or go on with key=value: it stands behind other text
	byPlace                  // the exact words suffice: it begins a paragraph in the doc of a function without directive
)

// spelling is a line taken apart: //, marks, a scheme such as go:, a word like smallage, a separator, a word like task.
type spelling struct {
	attached  bool // no blank before the tool, or a mark directly in front of it
	decorated bool // marks or a scheme before the tool
	scheme    bool
	tool      string
	separator string
	name      string
	rest      string
}

// Marks are what other tools' annotations begin with. Where a blank follows, those of lists and headings make prose.
const (
	marks     = `-+*@!#/\%&$~^=:;|`
	listMarks = "-+*#="
)

// alike decides whether a line is meant as a directive. The rule: its first words read smallage and task (or package),
// give or take a letter, and it does not go on like a sentence. It goes on like a directive where key=value follows, or
// nothing, or a remark set off by a dash. Where it has the form of a directive, with neither a blank after the slashes
// nor around the colon, no sentence is to be expected, and whatever follows will do.
func alike(line string, how certainty) (likeness, bool) {
	if strings.HasPrefix(line, "/*") {
		line = strings.TrimSuffix(line, "*/")
	}
	text, offsets := legible(line)
	s, ok := spell(text)
	if !ok {
		return likeness{}, false
	}
	target, ok := s.target(how)
	if !ok {
		return likeness{}, false
	}
	end := len(text) - len(s.rest)
	if offsets != nil {
		end = offsets[end]
	}
	shown := strings.TrimSpace(line[:end])
	between := strings.TrimSpace(s.separator)
	return likeness{
		shown:  shown,
		target: target,
		exact: s.tool == "smallage" && s.name == target && target != "" && !s.decorated && (between == ":" || between == "") &&
			shown == strings.TrimSpace(text[:len(text)-len(s.rest)]),
	}, true
}

// spell takes a line apart, where it begins like a directive.
func spell(text string) (s spelling, ok bool) {
	rest, line := strings.CutPrefix(text, "//")
	if !line {
		if rest, ok = strings.CutPrefix(text, "/*"); !ok {
			return s, false
		}
		rest = strings.TrimLeft(rest, "*")
	}
	before := len(rest)
	rest = strings.TrimLeft(rest, " \t")
	s.attached = len(rest) == before
	mark, rest := leading(rest, func(r rune) bool { return strings.ContainsRune(marks, r) })
	if mark != "" {
		after := strings.TrimLeft(rest, " \t")
		if strings.Contains(mark, "//") || len(mark) > 2 || len(after) < len(rest) && strings.ContainsAny(mark, listMarks) {
			return s, false // a directive commented out, a line drawn, an item of a list
		}
		s.attached, s.decorated, rest = true, true, after
	}
	if scheme, after, found := strings.Cut(rest, ":"); found && lowercase(scheme) && !isTool(scheme) && after != "" && isWord(firstRune(after)) {
		s.scheme, s.decorated, rest = true, true, after
	}
	if joined, after := leading(rest, func(r rune) bool { return isWord(r) || r == '-' || r == '_' }); strings.HasPrefix(after, ":") && isTool(joined) {
		s.tool, rest = joined, after
	} else {
		s.tool, rest = leading(rest, isWord)
	}
	if name, ok := joinedName(s.tool); ok {
		s.name, s.rest = name, rest
		return s, true
	}
	if !isTool(s.tool) {
		return s, false
	}
	s.separator, rest = leading(rest, func(r rune) bool {
		return !isWord(r) && !unicode.IsDigit(r) && !strings.ContainsRune("\"'`()[]{}\r\n", r)
	})
	s.name, s.rest = leading(rest, func(r rune) bool { return isWord(r) || unicode.IsDigit(r) })
	return s, s.separator != "" && len(strings.TrimSpace(s.separator)) <= 3
}

// target returns the directive that a spelling is meant as, and whether it is meant as one.
func (s spelling) target(how certainty) (target string, meant bool) {
	word, _, equals := strings.Cut(s.name+s.rest, "=")
	if equals && s.separator != "" {
		if word == "client" {
			return "package", true
		}
		if _, known := keys[word]; known {
			return "task", true
		}
	}
	target = nearest(s.name, directiveNames)
	colon := strings.Contains(s.separator, ":") || s.scheme
	blank := strings.ContainsAny(s.separator, " \t")
	form := s.attached && !blank && strings.ContainsAny(s.separator, ":=;") && how != byWords
	if target == "" {
		return "", form && !s.decorated && s.separator == ":" && !equals
	}
	exact := strings.EqualFold(s.name, target)
	switch rest := strings.TrimRight(s.rest, " \t\r"); {
	case rest == "":
		return target, s.attached && !blank || exact && colon || s.attached && exact
	case strings.HasPrefix(rest, "=") && !colon:
		return target, false // smallage.task = x
	case continues(rest, colon && !blank):
		return target, true
	case form:
		return target, true
	case colon && exact && isTool(s.tool) && isRemark(rest):
		return target, how != byWords
	}
	return target, how == byPlace && s.tool == "smallage" && s.separator == ":" && exact && isBlank(s.rest[0])
}

// continues holds for text that goes on as a directive does: key=value, perhaps after a comma; or a key alone, where it
// follows the directive's exact form.
func continues(rest string, tight bool) bool {
	words := strings.Fields(strings.TrimLeft(rest, ",;:| \t"))
	if len(words) == 0 || isWord(firstRune(rest)) || strings.ContainsRune("-_", firstRune(rest)) {
		return false
	}
	if key, _, ok := strings.Cut(words[0], "="); ok && key != "" && !strings.ContainsFunc(key, func(r rune) bool {
		return !isWord(r) && !unicode.IsDigit(r) && r != '-' && r != '_'
	}) {
		return true
	}
	_, known := keys[words[0]]
	return known && (tight || len(words) == 1 || strings.HasPrefix(words[1], "="))
}

// isRemark holds for text that is set off from what it stands behind.
func isRemark(rest string) bool {
	first, _, _ := strings.Cut(strings.TrimLeft(rest, " \t"), " ")
	return isBlank(rest[0]) && slices.Contains([]string{"-", "--", "–", "—", "//", "#", "=>", "->", "→", "|"}, first)
}

// isTool holds for words like the names of this project's tools.
func isTool(word string) bool {
	if len(word) < len("smallage")-2 || len(word) > 40 {
		return false // as most words are, and comments are many
	}
	return nearest(unjoined.Replace(word), tools) != ""
}

var (
	tools    = []string{"smallage", "smallagegen"}
	unjoined = strings.NewReplacer("-", "", "_", "")
)

// joinedName returns the directive's name in a word such as smallagetask.
func joinedName(word string) (name string, ok bool) {
	for _, name := range directiveNames {
		if strings.EqualFold(word, "smallage"+name) {
			return name, true
		}
	}
	return "", false
}

// legible is a line as it looks: without characters that cannot be seen, and with letters and signs of full width in
// their usual form. The offsets lead back to the line; they are nil where it is unchanged.
func legible(line string) (text string, offsets []int) {
	if strings.IndexFunc(line, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 {
		return line, nil
	}
	var b strings.Builder
	for i, r := range line {
		switch {
		case unicode.Is(unicode.Cf, r):
			continue
		case r >= '！' && r <= '～':
			r -= '！' - '!'
		case unicode.Is(unicode.Zs, r):
			r = ' '
		case strings.ContainsRune("ː∶꞉︓﹕", r):
			r = ':'
		}
		n, _ := b.WriteRune(r)
		for range n {
			offsets = append(offsets, i)
		}
	}
	return b.String(), append(offsets, len(line))
}

// leading splits a text behind the runes that it begins with.
func leading(text string, of func(rune) bool) (head, rest string) {
	i := strings.IndexFunc(text, func(r rune) bool { return !of(r) })
	if i < 0 {
		return text, ""
	}
	return text[:i], text[i:]
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsMark(r) }

func lowercase(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool { return r < 'a' || r > 'z' }) < 0
}

func firstRune(s string) rune {
	r, _ := utf8.DecodeRuneInString(s)
	return r
}
