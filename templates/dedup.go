package templates

import (
	"fmt"

	"github.com/dave/jennifer/jen"
)

// taskKey writes the function by which the task value computes its key from the arguments.
func (w *writer) taskKey(t *Task) *jen.Statement {
	names := t.Names()
	values := make([]jen.Code, len(t.Key.Params))
	for i, p := range t.Key.Params {
		values[i] = jen.Id("a").Dot(p.Field)
	}
	parameter := jen.Id("a").Id(names.Args)
	if len(values) == 0 {
		parameter = jen.Id(names.Args)
	}
	return jen.Func().Params(parameter).String().Add(block(jen.Return(jen.Id(names.DedupKey).Call(values...))))
}

// dedupKey writes the function that gives the key of a task's dedup template.
func (w *writer) dedupKey(t *Task) *jen.Statement {
	names := t.Names()
	body := newScope(w.imports.alias(RuntimePath))
	given := make(map[*Param]string, len(t.Key.Params))
	for _, p := range t.Key.Params {
		if !body[p.Name] {
			body.add(p.Name)
			given[p] = p.Name
		}
	}
	list, tall := make([]jen.Code, len(t.Key.Params)), false
	for i, p := range t.Key.Params {
		tall = tall || takesLines(p.Type)
		if given[p] == "" {
			given[p] = body.take(p.Name)
		}
		list[i] = jen.Id(given[p]).Add(w.imports.typ(p.Type))
	}
	var sum *jen.Statement
	for _, part := range t.Key.Parts {
		term := text(part.Literal)
		if part.Param != nil {
			value := jen.Id(given[part.Param])
			for _, f := range part.Fields {
				value = value.Dot(f)
			}
			term = w.imports.runtime("KeyText").Call(value, text(t.Key.Separators))
		}
		if sum == nil {
			sum = term
		} else {
			sum = sum.Op("+").Add(term)
		}
	}
	comment := fmt.Sprintf("%s returns the dedup key %q of %s.\n%s applies it unless an option says otherwise.",
		names.DedupKey, t.Settings.Dedup, t.Name, names.Enqueue)
	return commented(settled(comment), jen.Func().Id(names.DedupKey).Add(params(list, tall)).String().Block(jen.Return(sum)))
}
