package gen

import (
	"go/ast"
	"go/build/constraint"
	"path/filepath"
	"slices"
	"strings"
)

// The systems and architectures that a file's name can end in, as the go command knows them. Names that it has dropped
// stay, because it goes on ignoring their files.
var (
	systems = strings.Fields(`aix android darwin dragonfly freebsd hurd illumos ios js linux nacl netbsd openbsd plan9
		solaris wasip1 windows zos`)
	architectures = strings.Fields(`386 amd64 amd64p32 arm armbe arm64 arm64be loong64 mips mipsle mips64 mips64le
		mips64p32 mips64p32le ppc ppc64 ppc64le riscv riscv64 s390 s390x sparc sparc64 wasm`)
)

// constraintOf returns what must hold for the file to be built: from its name, its //go:build line, and import "C".
func constraintOf(f *file) string {
	var all constraint.Expr
	and := func(e constraint.Expr) {
		if all == nil {
			all = e
		} else {
			all = &constraint.AndExpr{X: all, Y: e}
		}
	}
	for _, tag := range nameTags(filepath.Base(f.path)) {
		and(&constraint.TagExpr{Tag: tag})
	}
	for _, group := range f.syntax.Comments {
		if group.Pos() > f.syntax.Package {
			break
		}
		for _, comment := range group.List {
			if constraint.IsGoBuild(comment.Text) {
				if e, err := constraint.Parse(strings.TrimRight(comment.Text, "\r")); err == nil {
					and(e)
				}
			}
		}
	}
	if f.cgo || slices.ContainsFunc(f.syntax.Imports, func(spec *ast.ImportSpec) bool { return spec.Path.Value == `"C"` }) {
		and(&constraint.TagExpr{Tag: "cgo"})
	}
	if all == nil {
		return ""
	}
	return all.String()
}

// nameTags returns the tags that a file's name stands for: tasks_linux_arm64.go is built on linux and arm64.
func nameTags(name string) []string {
	name = strings.TrimSuffix(strings.TrimSuffix(name, ".go"), "_test")
	_, rest, ok := strings.Cut(name, "_") // linux.go is no constraint, x_linux.go is
	if !ok {
		return nil
	}
	parts := strings.Split(rest, "_")
	n := len(parts)
	if n >= 2 && slices.Contains(systems, parts[n-2]) && slices.Contains(architectures, parts[n-1]) {
		return parts[n-2:]
	}
	if last := parts[n-1]; slices.Contains(systems, last) || slices.Contains(architectures, last) {
		return []string{last}
	}
	return nil
}

// why says what leaves a file out.
func (f *file) why() string {
	if f.constraint == "" {
		return "its package clause or its name"
	}
	return f.constraint
}

// settleConstraint finds the constraint that the files of all tasks share.
func (s *source) settleConstraint(r *reporter) {
	for _, t := range s.tasks {
		first := s.tasks[0]
		if t.file.constraint == first.file.constraint {
			continue
		}
		r.report(mixedConstraints, t.at(), shownConstraint(t.file), first.label(), first.at(), shownConstraint(first.file))
	}
	s.constraint = generatedConstraint(s.tasks[0].file.constraint)
}

// generatedConstraint is the constraint of the file that is generated for tasks with the given one.
func generatedConstraint(shared string) string {
	if shared != "" {
		if e, err := constraint.Parse("//go:build " + shared); err == nil {
			return (&constraint.AndExpr{X: &constraint.NotExpr{X: &constraint.TagExpr{Tag: Tag}}, Y: e}).String()
		}
	}
	return "!" + Tag
}

func shownConstraint(f *file) string {
	if f.constraint == "" {
		return "no build constraint"
	}
	return "the build constraint " + f.constraint
}
