package templates

import (
	"strconv"
	"time"

	"github.com/dave/jennifer/jen"
)

// task writes the value that carries what the directive says: var chargeTask = smallage.Task[ChargeArgs]{…}. It does not
// hold the handler: a task that enqueues itself would be an initialisation cycle. Where callers live in a package of
// their own, each side has the settings that it applies.
func (w *writer) task(t *Task) *jen.Statement {
	names, s := t.Names(), t.Settings
	elements := []jen.Code{field("Name", text(t.Name))}
	add := func(name string, set bool, value func() jen.Code) {
		if set {
			elements = append(elements, field(name, value()))
		}
	}
	span := func(d time.Duration) func() jen.Code {
		return func() jen.Code { return w.span(d) }
	}
	enqueuer, worker := w.file.Callers, w.file.Table != nil
	add("Aliases", len(s.Aliases) > 0, func() jen.Code { return texts(s.Aliases) })
	add("Queue", s.Queue != "", func() jen.Code { return text(s.Queue) })
	add("DedupKey", enqueuer && t.Key != nil, func() jen.Code { return w.taskKey(t) })
	add("ResultTTL", enqueuer && s.ResultTTL != 0, span(s.ResultTTL))
	add("ExpiresIn", enqueuer && s.ExpiresIn != 0, span(s.ExpiresIn))
	add("Attempts", worker && s.Attempts != 0, func() jen.Code { return jen.Lit(s.Attempts) })
	add("Backoff", worker && s.Backoff != 0, span(s.Backoff))
	add("BackoffMax", worker && s.BackoffMax != 0, span(s.BackoffMax))
	add("Timeout", worker && s.Timeout != 0, span(s.Timeout))
	add("DedupTTL", worker && s.DedupTTL != 0, span(s.DedupTTL))
	add("Optional", worker && len(s.Optional) > 0, func() jen.Code { return texts(s.Optional) })

	return jen.Var().Id(names.Task).Op("=").Add(w.imports.runtime("Task")).Index(w.argsType(t)).Add(fields(elements))
}

// argsType names the task's argument struct, wherever it is declared.
func (w *writer) argsType(t *Task) *jen.Statement {
	if w.file.Table != nil && w.file.Table.Client != nil {
		return w.imports.qual(w.file.Table.Client.Path, t.Names().Args)
	}
	return jen.Id(t.Names().Args)
}

// text writes a string literal.
func text(s string) *jen.Statement { return jen.Id(strconv.Quote(s)) }

func texts(list []string) *jen.Statement {
	items := make([]jen.Code, len(list))
	for i, s := range list {
		items[i] = text(s)
	}
	return jen.Index().Id("string").Values(items...)
}

var units = []struct {
	span time.Duration
	name string
}{
	{time.Hour, "Hour"}, {time.Minute, "Minute"}, {time.Second, "Second"}, {time.Millisecond, "Millisecond"}, {time.Microsecond, "Microsecond"},
}

// span writes a duration as people do: 30 * time.Second.
func (w *writer) span(d time.Duration) *jen.Statement {
	for _, unit := range units {
		if d%unit.span == 0 {
			name := w.imports.qual("time", unit.name)
			if d == unit.span {
				return name
			}
			return jen.Id(strconv.FormatInt(int64(d/unit.span), 10)).Op("*").Add(name)
		}
	}
	return jen.Id(strconv.FormatInt(int64(d), 10)).Op("*").Add(w.imports.qual("time", "Nanosecond"))
}
