package templates

import (
	"fmt"

	"github.com/dave/jennifer/jen"
)

// args writes the struct that travels with a job, one field per parameter. Its type also ties options to their task.
func (w *writer) args(t *Task) *jen.Statement {
	names := t.Names()
	comment := fmt.Sprintf("%s are the arguments of %s as they travel with its jobs, one JSON object.", names.Args, t.Name)
	params := t.Arguments()
	if len(params) == 0 {
		return commented(comment, jen.Type().Id(names.Args).Struct())
	}
	lines := make([]jen.Code, len(params))
	for i, p := range params {
		lines[i] = jen.Id(p.Field).Add(w.imports.typ(p.Type)).Id(fmt.Sprintf("`json:%q`", p.Name))
	}
	return commented(comment, jen.Type().Id(names.Args).Struct(lines...))
}
