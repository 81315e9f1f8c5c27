package gen

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/smallage/smallage/templates"
)

// task is one annotated function on its way to a templates.Task.
type task struct {
	templates.Task
	settings     settings
	source       *source
	file         *file
	decl         *ast.FuncDecl
	fn           *types.Func
	params       []*param
	words        map[string]token.Position // where each key's value stands
	lacksContext bool
	uncallable   bool
	broken       bool // something was reported; what depends on it is not checked further
}

// at is where the function is declared.
func (t *task) at() token.Position { return t.source.at(t.decl.Name.Pos()) }

// label is how messages call the function: Charge, or Service.Charge.
func (t *task) label() string {
	if t.decl.Recv != nil {
		if name := receiverName(t.decl); name != "" {
			return name + "." + t.decl.Name.Name
		}
	}
	return t.decl.Name.Name
}

// keyAt is where the value of a key stands.
func (t *task) keyAt(key string) token.Position { return t.words[key] }

// newSource finds every Go file of the package's folder and the directives in them.
func newSource(p *packages.Package, r *reporter) *source {
	s := &source{Package: p, dir: p.Dir}
	if s.dir == "" {
		return s // nothing is there
	}
	s.readLoaded()
	s.readOthers()
	s.scanFiles(r)
	return s
}

// scanUnlisted reports the directives in folders that the go command does not list, unless their code was generated
// where it does.
func scanUnlisted(dirs []string, r *reporter) (list []*source) {
	for _, dir := range dirs {
		s := &source{Package: &packages.Package{Fset: token.NewFileSet()}, dir: dir}
		s.elsewhere = readElsewhere(dir)
		s.readOthers()
		s.scanFiles(r)
		list = append(list, s)
	}
	return list
}

func (s *source) scanFiles(r *reporter) {
	slices.SortFunc(s.files, func(a, b *file) int { return strings.Compare(a.path, b.path) })
	for _, f := range s.files {
		f.constraint = constraintOf(f)
		s.scan(f, r)
	}
}

// readLoaded takes the files that the load has parsed. What cgo makes of a file lies in the build cache; its positions
// lead back to the original.
func (s *source) readLoaded() {
	for _, syntax := range s.Syntax {
		path := s.Fset.File(syntax.FileStart).Name()
		cgo := !slices.Contains(s.GoFiles, path)
		if cgo {
			path = s.at(syntax.Package).Filename
			if !slices.Contains(s.GoFiles, path) {
				continue // _cgo_gotypes.go
			}
		}
		if filepath.Base(path) == templates.FileName && isOursSyntax(syntax) {
			s.header = true // a client's, which is part of the load
			continue
		}
		s.files = append(s.files, &file{path: path, syntax: syntax, loaded: true, cgo: cgo})
	}
}

// readOthers parses the files of the folder that are not part of this build: tests, and those that a constraint leaves
// out. Directives in them are reported, and their names are not generated.
func (s *source) readOthers() {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return // the load has just read it; a folder that vanished meanwhile has no directives
	}
	for _, entry := range entries {
		name := entry.Name()
		path := filepath.Join(s.dir, name)
		if !strings.HasSuffix(name, ".go") || strings.HasPrefix(name, "_") || strings.HasPrefix(name, ".") || entry.IsDir() ||
			slices.ContainsFunc(s.files, func(f *file) bool { return f.path == path }) {
			continue
		}
		data, err := readRegular(path)
		if err != nil {
			continue
		}
		if isOurs(data) {
			s.header = s.header || name == templates.FileName
			continue
		}
		if name == templates.FileName && begun(data) {
			s.header, s.begun = true, true
			continue
		}
		syntax, err := parser.ParseFile(s.Fset, path, data, parser.ParseComments|parser.SkipObjectResolution)
		if syntax == nil || err != nil && slices.Contains(s.GoFiles, path) {
			continue // does not parse, and is reported as such where it belongs to the build
		}
		s.files = append(s.files, &file{path: path, syntax: syntax, test: strings.HasSuffix(name, "_test.go")})
	}
}

// isOurs holds for a file that smallagegen has written and may replace or remove.
func isOurs(data []byte) bool {
	line, _, _ := strings.Cut(string(data[:min(len(data), 200)]), "\n")
	return strings.TrimRight(strings.TrimPrefix(line, "\ufeff"), "\r") == templates.Header
}

// isOursSyntax is isOurs for a file that has been parsed.
func isOursSyntax(f *ast.File) bool {
	return len(f.Comments) > 0 && f.Comments[0].Pos() < f.Package && f.Comments[0].List[0].Text == templates.Header
}

// scan reads the directives of one file.
func (s *source) scan(f *file, r *reporter) {
	owned := map[*ast.Comment]bool{}
	bare := map[*ast.CommentGroup]bool{} // docs of functions without a directive
	for _, decl := range f.syntax.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && fn.Doc != nil {
			bare[fn.Doc] = !s.scanFunc(f, fn, owned, r)
		}
	}
	s.scanPackage(f, owned, r)
	for _, group := range f.syntax.Comments {
		for i, comment := range group.List {
			if !owned[comment] {
				s.scanComment(f, i, group, bare[group], r)
			}
		}
	}
}

// scanFunc makes a task of a function whose doc comment has a directive, and returns whether it has one.
func (s *source) scanFunc(f *file, fn *ast.FuncDecl, owned map[*ast.Comment]bool, r *reporter) (has bool) {
	var t *task
	for _, comment := range fn.Doc.List {
		rest, ok := directive(comment.Text, taskDirective)
		if !ok {
			continue
		}
		owned[comment] = true
		if !f.loaded {
			switch t := (&task{decl: fn}); {
			case f.test:
				r.report(testFile, s.at(comment.Pos()), taskDirective)
			case !s.elsewhere.covers(f, t.label()):
				r.report(leftOut, s.at(comment.Pos()), taskDirective, f.why())
			}
			has = true
			continue
		}
		if t == nil {
			t = &task{source: s, file: f, decl: fn, words: map[string]token.Position{}}
			t.fn, _ = s.TypesInfo.Defs[fn.Name].(*types.Func)
			t.Doc = fn.Doc.Text()
			s.tasks = append(s.tasks, t)
		}
		t.read(comment, rest, r)
	}
	return has || t != nil
}

// read adds one line of a directive to the task's settings.
func (t *task) read(comment *ast.Comment, rest string, r *reporter) {
	base := len(comment.Text) - len(rest)
	at := func(offset int) token.Position { return t.source.at(comment.Pos() + token.Pos(base+offset)) }
	words, mistakes := parseWords(rest)
	for _, m := range mistakes {
		r.report(badWord, at(m.offset), m.text)
		t.broken = true
	}
	for _, w := range words {
		k, ok := keys[w.key]
		if !ok {
			r.report(unknownKey, at(w.offset), show(w.key), didYouMean(w.key, Keys()), oneOf(Keys()))
			t.broken = true
			continue
		}
		if first, twice := t.words[w.key]; twice {
			r.report(repeatedKey, at(w.offset), w.key, first)
			t.broken = true
			continue
		}
		t.words[w.key] = at(w.values)
		if problem := k.set(&t.settings, w.value); problem != "" {
			r.report(badValue, at(w.values), w.key, show(w.value), problem)
			t.broken = true
		}
	}
}

// scanPackage reads the directive of the package clause.
func (s *source) scanPackage(f *file, owned map[*ast.Comment]bool, r *reporter) {
	if f.syntax.Doc == nil {
		return
	}
	for _, comment := range f.syntax.Doc.List {
		rest, ok := directive(comment.Text, packageDirective)
		if !ok {
			continue
		}
		owned[comment] = true
		switch {
		case f.test:
			r.report(testFile, s.at(comment.Pos()), packageDirective)
		case !f.loaded:
			if s.elsewhere == nil || s.elsewhere.constraint != generatedConstraint(f.constraint) {
				r.report(leftOut, s.at(comment.Pos()), packageDirective, f.why())
			}
		default:
			s.readPackage(comment, rest, r)
		}
	}
}

// readPackage reads one line of //smallage:package.
func (s *source) readPackage(comment *ast.Comment, rest string, r *reporter) {
	base := len(comment.Text) - len(rest)
	at := func(offset int) token.Position { return s.at(comment.Pos() + token.Pos(base+offset)) }
	words, mistakes := parseWords(rest)
	for _, m := range mistakes {
		r.report(badWord, at(m.offset), m.text)
	}
	if len(words)+len(mistakes) == 0 {
		r.report(badWord, s.at(comment.Pos()), packageDirective+" says nothing; write client= and a folder, or remove it")
	}
	for _, w := range words {
		switch {
		case w.key != "client":
			r.report(unknownKey, at(w.offset), show(w.key), didYouMean(w.key, []string{"client"}), "client")
		case s.client != nil:
			r.report(repeatedKey, at(w.offset), w.key, s.client.at)
		default:
			s.client = &client{value: w.value, at: at(w.values)}
		}
	}
}
