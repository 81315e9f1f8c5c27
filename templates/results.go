package templates

import (
	"fmt"

	"github.com/dave/jennifer/jen"
)

// lookup writes the function that looks once for a task's value.
func (w *writer) lookup(t *Task) *jen.Statement {
	names := t.Names()
	comment := fmt.Sprintf("%s looks once for the value of a job of %s.\nIt returns smallage.ErrNoResult where there is none, "+
		"and a *smallage.JobError where the job did not succeed.", names.Lookup, t.Name)
	return w.result(t, names.Lookup, "Lookup", comment, false)
}

// wait writes the function that waits for a task's value.
func (w *writer) wait(t *Task) *jen.Statement {
	names := t.Names()
	comment := fmt.Sprintf("%s waits for the value of a job of %s.\nIt returns smallage.ErrNoResult after the timeout, "+
		"and a *smallage.JobError where the job did not succeed.", names.Wait, t.Name)
	return w.result(t, names.Wait, "Wait", comment, true)
}

func (w *writer) result(t *Task, name, verb, comment string, timed bool) *jen.Statement {
	names := t.Names()
	body := newScope(names.Task, w.imports.alias(RuntimePath))
	if t.Result.Type != nil {
		body.addType(t.Result.Type, w.imports)
	}
	ctx, r, id := body.take("ctx"), body.take("r"), body.take("id")
	list := []jen.Code{
		jen.Id(ctx).Add(w.imports.qual("context", "Context")),
		jen.Id(r).Add(w.imports.runtime("Results")),
		jen.Id(id).Add(w.imports.runtime("JobID")),
	}
	rest := []jen.Code{jen.Id(r), jen.Id(id)}
	if timed {
		timeout := body.take("timeout")
		list = append(list, jen.Id(timeout).Add(w.imports.qual("time", "Duration")))
		rest = append(rest, jen.Id(timeout))
	}
	var call *jen.Statement
	switch t.Result.Kind {
	case Value, AddressValue, Pointer:
		suffix := "As"
		if t.Result.Kind == Pointer {
			suffix = "Pointer"
		}
		call = w.imports.runtime(verb + suffix).Index(w.imports.typ(t.Result.Type)).
			Call(append([]jen.Code{jen.Id(ctx), jen.Op("&").Id(names.Task)}, rest...)...)
	case Bytes, NoValue:
		call = jen.Id(names.Task).Dot(verb).Call(append([]jen.Code{jen.Id(ctx)}, rest...)...)
	}
	return commented(comment, jen.Func().Id(name).Params(list...).
		Params(w.valueType(t), jen.Error()).
		Block(jen.Return(call)))
}

// valueType is the type of the value as the task returns it.
func (w *writer) valueType(t *Task) *jen.Statement {
	switch t.Result.Kind {
	case Value, AddressValue:
		return w.imports.typ(t.Result.Type)
	case Pointer:
		return jen.Op("*").Add(w.imports.typ(t.Result.Type))
	case Bytes, NoValue:
	}
	return jen.Index().Byte()
}
