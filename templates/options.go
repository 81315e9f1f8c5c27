package templates

import (
	"fmt"

	"github.com/dave/jennifer/jen"
)

// options writes the option type of a task and the builder of its options.
func (w *writer) options(t *Task) []*jen.Statement {
	names := t.Names()
	return []*jen.Statement{
		commented(fmt.Sprintf("%s changes one call of %s; %s makes them.", names.Option, names.Enqueue, names.With),
			jen.Type().Id(names.Option).Op("=").Add(w.imports.runtime("Option")).Index(jen.Id(names.Args))),
		commented(fmt.Sprintf("%s makes the options of %s.", names.With, names.Enqueue),
			jen.Var().Id(names.With).Add(w.imports.runtime("With")).Index(jen.Id(names.Args))),
	}
}
