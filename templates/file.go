package templates

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/dave/jennifer/jen"
)

// Render returns the file's Go source, formatted.
func Render(f *File) ([]byte, error) {
	w := &writer{file: f, imports: newImports(f)}
	var body []*jen.Statement
	body = append(body, w.gate())
	if f.Table != nil {
		body = append(body, w.dispatch())
		for _, t := range f.Tasks {
			body = append(body, w.guard(t))
		}
	}
	for _, t := range f.Tasks {
		body = append(body, w.task(t))
		if f.Callers {
			body = append(body, w.args(t))
			body = append(body, w.options(t)...)
			body = append(body, w.enqueue(t))
			if t.Key != nil {
				body = append(body, w.dedupKey(t))
			}
			if t.Result.Kind != NoValue {
				body = append(body, w.lookup(t), w.wait(t))
			}
		}
	}
	out := jen.NewFile(f.Package)
	if f.Constraint == "" {
		out.HeaderComment(Header)
	} else {
		out.HeaderComment(Header + "\n\n//go:build " + f.Constraint)
	}
	if f.Comment != "" {
		out.PackageComment(strings.TrimSuffix(commentText(f.Comment), "\n"))
	}
	out.Add(w.imports.block())
	for _, piece := range body {
		out.Line()
		out.Add(piece)
	}
	var source bytes.Buffer
	if err := out.Render(&source); err != nil {
		return nil, fmt.Errorf("write the generated code of package %s: %w", f.Path, err)
	}
	return append(bytes.TrimRight(source.Bytes(), "\n"), '\n'), nil
}

// writer writes the pieces of one file.
type writer struct {
	file    *File
	imports *imports
}

// gate makes the file fail to compile with a runtime that is too old for it.
func (w *writer) gate() *jen.Statement {
	return jen.Const().Id("_").Op("=").Add(w.imports.runtime("GeneratedV1")).Comment("// the runtime is new enough")
}

// commented puts a doc comment before a declaration.
func commented(text string, declaration *jen.Statement) *jen.Statement {
	return jen.Id(commentText(text)).Add(declaration)
}

// commentText is a text as line comments, ended by a newline. No line can become a directive or end the comment.
func commentText(text string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimSpace(text)) {
		line = strings.TrimRight(line, " \t\r\n")
		switch {
		case line == "":
			b.WriteString("//\n")
		case strings.HasPrefix(line, "\t"):
			b.WriteString("//" + line + "\n")
		default:
			b.WriteString("// " + line + "\n")
		}
	}
	return b.String()
}

// params writes a parameter list: on one line, unless a type in it takes several.
func params(list []jen.Code, tall bool) *jen.Statement {
	if tall {
		return jen.Custom(jen.Options{Open: "(", Close: ")", Separator: ",", Multi: true}, list...)
	}
	return jen.Params(list...)
}

// block writes a function's only statement on the function's own line.
func block(statement jen.Code) *jen.Statement {
	return jen.Custom(jen.Options{Open: "{", Close: "}"}, statement)
}

// fields writes the elements of a composite literal, one a line.
func fields(elements []jen.Code) *jen.Statement {
	return jen.Custom(jen.Options{Open: "{", Close: "}", Separator: ",", Multi: true}, elements...)
}

// field writes one element of a composite literal.
func field(name string, value jen.Code) jen.Code {
	return jen.Id(name).Op(":").Add(value)
}
