package templates

import "github.com/dave/jennifer/jen"

// enqueue writes the typed wrapper. Its body names only the task value and the argument struct, so that a parameter
// called like a package or a predeclared name does no harm; parameter types are read outside of the body.
func (w *writer) enqueue(t *Task) *jen.Statement {
	names, own := t.Names(), t.Arguments()
	body := newScope(names.Task, names.Args)
	theirs := newScope()
	for _, p := range own {
		theirs.add(p.Name)
	}
	// The task's names are kept; only one that would hide what the body uses is numbered.
	given := make([]string, len(own))
	for i, p := range own {
		given[i] = p.Name
		if body[p.Name] {
			given[i] = free(p.Name, func(n string) bool { return body[n] || theirs[n] })
		}
		theirs.add(given[i])
	}
	for name := range body {
		theirs.add(name)
	}
	ctx, q, opts := theirs.take("ctx"), theirs.take("q"), theirs.take("opts")

	list := []jen.Code{
		jen.Id(ctx).Add(w.imports.qual("context", "Context")),
		jen.Id(q).Add(w.imports.runtime("Enqueuer")),
	}
	var values []jen.Code
	tall := false
	for i, p := range own {
		tall = tall || takesLines(p.Type)
		list = append(list, jen.Id(given[i]).Add(w.imports.typ(p.Type)))
		values = append(values, field(p.Field, jen.Id(given[i])))
	}
	list = append(list, jen.Id(opts).Op("...").Id(names.Option))

	call := jen.Id(names.Task).Dot("Enqueue").Call(jen.Id(ctx), jen.Id(q), jen.Id(names.Args).Values(values...), jen.Id(opts))
	return commented(enqueueComment(t), jen.Func().Id(names.Enqueue).Add(params(list, tall)).
		Params(w.imports.runtime("JobID"), jen.Error()).
		Block(jen.Return(call)))
}
