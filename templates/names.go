package templates

import (
	"go/ast"
	"go/token"
	"go/types"
	"strconv"
	"unicode"
	"unicode/utf8"
)

// DispatchName is the function that joins a package's tasks.
const DispatchName = "Dispatch"

// Names are the identifiers that are generated for one task.
type Names struct {
	Enqueue, Args, Option, With, Task string
	DedupKey                          string // empty: none
	Lookup, Wait                      string // empty: none
}

// Names returns the identifiers of the task.
func (t *Task) Names() Names {
	n := Names{
		Enqueue: t.Prefix + "Enqueue",
		Args:    t.Prefix + "Args",
		Option:  t.Prefix + "Option",
		With:    t.Prefix + "With",
		Task:    Unexported(t.Prefix) + "Task",
	}
	if t.Key != nil {
		n.DedupKey = t.Prefix + "DedupKey"
	}
	if t.Result.Kind != NoValue {
		n.Lookup = t.Prefix + "Lookup"
		n.Wait = t.Prefix + "Wait"
	}
	return n
}

// All returns the identifiers in a fixed order.
func (n Names) All() []string {
	all := []string{n.Enqueue, n.Args, n.Option, n.With, n.Task}
	for _, name := range []string{n.DedupKey, n.Lookup, n.Wait} {
		if name != "" {
			all = append(all, name)
		}
	}
	return all
}

// Unexported returns the name with its first word in lower case: Charge gives charge, HTTPFetch gives httpFetch.
func Unexported(name string) string {
	runes := []rune(name)
	for i, r := range runes {
		if !unicode.IsUpper(r) {
			break
		}
		if i > 0 && i+1 < len(runes) && unicode.IsLower(runes[i+1]) {
			break // the last capital begins the next word
		}
		runes[i] = unicode.ToLower(r)
	}
	return string(runes)
}

// Exported returns the name of the field that carries a parameter. A name that has no upper case (_x, 送信) gets the
// letter X before it.
func Exported(name string) string {
	first, size := utf8.DecodeRuneInString(name)
	if upper := string(unicode.ToUpper(first)) + name[size:]; ast.IsExported(upper) {
		return upper
	}
	return "X" + name
}

// free returns name, or name with the smallest number from 2 that makes it free.
func free(name string, taken func(string) bool) string {
	candidate := name
	for n := 2; token.IsKeyword(candidate) || taken(candidate); n++ {
		candidate = name + strconv.Itoa(n)
	}
	return candidate
}

// scope is the set of names that mean something in a piece of generated code.
type scope map[string]bool

func newScope(names ...string) scope {
	s := scope{}
	s.add(names...)
	return s
}

func (s scope) add(names ...string) {
	for _, name := range names {
		s[name] = true
	}
}

// take returns a free name like the one wanted, and takes it.
func (s scope) take(wanted string) string {
	name := free(wanted, func(n string) bool { return s[n] })
	s[name] = true
	return name
}

// addType adds the names that a type is written with: predeclared ones, those of this package, and imports.
func (s scope) addType(t types.Type, q *imports) {
	walkNames(t, func(pkg *types.Package, name string) {
		if pkg != nil && pkg.Path() != q.local {
			name = q.alias(pkg.Path())
		}
		s[name] = true
	})
}
