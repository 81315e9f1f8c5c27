package templates

import (
	"fmt"
	"go/types"

	"github.com/dave/jennifer/jen"
)

// dispatch writes the function that joins the package's tasks with their dependencies.
func (w *writer) dispatch() *jen.Statement {
	table := w.file.Table
	given := w.dependencyNames()
	list, tall := make([]jen.Code, len(table.Dependencies)), false
	for i, d := range table.Dependencies {
		tall = tall || takesLines(d.Type)
		list[i] = jen.Id(given[d]).Add(w.imports.typ(d.Type))
	}
	entries := make([]jen.Code, len(w.file.Tasks))
	for i, t := range w.file.Tasks {
		entries[i] = w.entry(t, given)
	}
	joined := w.imports.runtime("NewTable").Custom(jen.Options{Open: "(", Close: ")", Separator: ",", Multi: true}, entries...)
	for _, d := range table.Dependencies {
		if d.Nullable {
			joined = joined.Dot("Needs").Call(text(d.Name), jen.Id(given[d]))
		}
	}
	comment := fmt.Sprintf("%s returns the tasks of package %s for smallage.NewWorker.", DispatchName, w.file.Package)
	if len(table.Dependencies) > 0 {
		comment += " It takes what their handlers depend on."
	}
	return commented(comment, jen.Func().Id(DispatchName).Add(params(list, tall)).
		Add(w.imports.runtime("Table")).
		Block(jen.Return(joined)))
}

// dependencyNames gives Dispatch's parameters their names: the dependencies' own, numbered where one would hide a name
// that the body uses. Callers pass them by position, so the number shows nowhere else.
func (w *writer) dependencyNames() map[*Dependency]string {
	body := newScope("ctx", "a", "v", "err", "error", w.imports.alias(RuntimePath), w.imports.alias("context"))
	if client := w.file.Table.Client; client != nil {
		body.add(w.imports.alias(client.Path))
	}
	for _, t := range w.file.Tasks {
		names := t.Names()
		body.add(names.Task)
		if w.file.Table.Client == nil {
			body.add(names.Args)
		}
		if t.Receiver == nil {
			body.add(t.Func)
		}
		if t.Result.Kind == Bytes {
			body.add("byte")
		}
		if t.Result.Type != nil {
			body.addType(t.Result.Type, w.imports)
		}
	}
	given := map[*Dependency]string{}
	for _, d := range w.file.Table.Dependencies {
		given[d] = body.take(d.Name)
	}
	return given
}

// entry ties one task to its handler.
func (w *writer) entry(t *Task, given map[*Dependency]string) jen.Code {
	arguments := []jen.Code{jen.Id("ctx")}
	name := "_"
	for _, p := range t.Params {
		var value *jen.Statement
		if p.Dependency != nil {
			value = jen.Id(given[p.Dependency])
		} else {
			value, name = jen.Id("a").Dot(p.Field), "a"
		}
		if p.Variadic {
			value = value.Op("...")
		}
		arguments = append(arguments, value)
	}
	call := jen.Id(t.Func)
	if t.Receiver != nil {
		call = jen.Id(given[t.Receiver]).Dot(t.Func)
	}
	call = call.Call(arguments...)

	verb, body := "HandleValue", []jen.Code{jen.Return(call)}
	var results jen.Code
	switch t.Result.Kind {
	case NoValue:
		verb, results = "Handle", jen.Error()
	case Bytes:
		results = jen.Params(jen.Index().Byte(), jen.Error())
	case Value, Pointer:
		verb, results = "HandleBinary", jen.Params(w.valueType(t), jen.Error())
	case AddressValue:
		verb, results = "HandleBinary", jen.Params(jen.Op("*").Add(w.valueType(t)), jen.Error())
		body = []jen.Code{
			jen.List(jen.Id("v"), jen.Id("err")).Op(":=").Add(call),
			jen.Return(jen.Op("&").Id("v"), jen.Id("err")),
		}
	}
	handler := jen.Func().Params(
		jen.Id("ctx").Add(w.imports.qual("context", "Context")),
		jen.Id(name).Add(w.argsType(t)),
	).Add(results).Block(body...)
	return w.imports.runtime(verb).Call(jen.Op("&").Id(t.Names().Task), handler)
}

// guard makes a file that is older than its task fail to compile, with the task's name in the message.
func (w *writer) guard(t *Task) *jen.Statement {
	list := []jen.Code{}
	function := jen.Id(t.Func)
	if t.Receiver != nil {
		list = append(list, w.imports.typ(t.Method))
		function = w.imports.typ(t.Method)
		if _, pointer := types.Unalias(t.Method).(*types.Pointer); pointer {
			function = jen.Parens(function)
		}
		function = function.Dot(t.Func)
	}
	list = append(list, w.imports.qual("context", "Context"))
	for _, p := range t.Params {
		if slice, ok := p.Type.(*types.Slice); ok && p.Variadic {
			list = append(list, jen.Op("...").Add(w.imports.typ(slice.Elem())))
			continue
		}
		list = append(list, w.imports.typ(p.Type))
	}
	var results jen.Code = jen.Error()
	if t.Result.Kind != NoValue {
		results = jen.Params(w.valueType(t), jen.Error())
	}
	return jen.Var().Id("_").Func().Params(list...).Add(results).Op("=").Add(function)
}
