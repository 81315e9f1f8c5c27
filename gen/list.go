package gen

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/smallage/smallage/templates"
)

// Task is what a list shows of one task.
type Task struct {
	Name     string   `json:"name"`
	Aliases  []string `json:"aliases,omitempty"`
	Package  string   `json:"package"`
	Func     string   `json:"func"`
	Queue    string   `json:"queue"`
	Attempts int      `json:"attempts"`
	Timeout  string   `json:"timeout,omitempty"` // empty: none
	Dedup    string   `json:"dedup,omitempty"`   // the template; empty: none
	Position string   `json:"position"`          // file:line:column, relative to the folder of the run where shorter
}

func listed(t *task, dir string) Task {
	item := Task{
		Name: t.Name, Aliases: t.settings.Aliases, Package: t.source.PkgPath, Func: t.label(),
		Queue: t.settings.Queue, Attempts: t.settings.Attempts, Dedup: t.settings.Dedup,
		Position: relative(dir, t.at()),
	}
	if item.Queue == "" {
		item.Queue = templates.DefaultQueue
	}
	if item.Attempts == 0 {
		item.Attempts = templates.DefaultAttempts
	}
	if t.settings.Timeout != 0 {
		item.Timeout = templates.Span(t.settings.Timeout)
	}
	return item
}

// List writes tasks as a table for people.
func List(w io.Writer, tasks []Task) error {
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "TASK\tQUEUE\tATTEMPTS\tTIMEOUT\tDEDUP\tPOSITION")
	for _, t := range tasks {
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\t%s\n", t.Name, t.Queue, t.Attempts, dash(t.Timeout), dash(t.Dedup), t.Position)
	}
	return table.Flush()
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// ListJSON writes tasks as a JSON array.
func ListJSON(w io.Writer, tasks []Task) error {
	if tasks == nil {
		tasks = []Task{}
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(tasks)
}
