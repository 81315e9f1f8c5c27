package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	smallage "github.com/smallage/smallage/runtime"
)

// row is what became of one kind of job.
type row struct {
	task    string
	endings map[smallage.Status]int
	took    time.Duration
}

func newRow(task string) row { return row{task: task, endings: map[smallage.Status]int{}} }

func (r row) jobs() (n int) {
	for _, count := range r.endings {
		n += count
	}
	return n
}

// promises are what the example says will hold, each with whether it did.
type promises []promise

type promise struct {
	text string
	held bool
}

func (p *promises) check(held bool, format string, args ...any) {
	*p = append(*p, promise{fmt.Sprintf(format, args...), held})
}

func (p promises) kept() bool {
	for _, promise := range p {
		if !promise.held {
			return false
		}
	}
	return len(p) > 0
}

func printSummary(out io.Writer, rows []row, checked promises) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "task\tjobs\tok\tduplicate\tfailed\ttook\t")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%s\t\n", r.task, r.jobs(), r.endings[smallage.StatusOK],
			r.endings[smallage.StatusDuplicate], r.endings[smallage.StatusFailed], r.took.Round(time.Millisecond))
	}
	_ = w.Flush() // as with the other prints: who closed the output does not want it
	fmt.Fprintln(out)
	for _, p := range checked {
		mark := "as promised"
		if !p.held {
			mark = "NOT AS PROMISED"
		}
		fmt.Fprintf(out, "%s: %s\n", mark, p.text)
	}
}
