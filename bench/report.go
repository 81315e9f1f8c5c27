package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// report is the run as Markdown: what it ran on, goals, one table for each thing measured, and what follows from them for
// more masters.
func (b *benchmark) report(ctx context.Context) string {
	var out strings.Builder
	out.WriteString("# Results\n\n")
	b.header(ctx, &out)
	b.goals(&out)
	printed := map[string]bool{}
	for _, r := range b.rows {
		if heading := r.heading(); !printed[heading] {
			printed[heading] = true
			b.table(&out, heading)
		}
	}
	b.scale(&out)
	return out.String()
}

func (r row) heading() string {
	if r.table != "" {
		return r.table
	}
	return r.name
}

// line is one line of a table.
type line struct {
	label string
	found []metrics
}

// lines are what rows of one heading found, the one to compare with first.
func (b *benchmark) lines(heading string) (of row, lines []line) {
	for _, r := range b.rows {
		if r.heading() != heading {
			continue
		}
		if len(lines) == 0 {
			of = r
		}
		for _, name := range r.who {
			label := name
			if r.label != "" {
				label = r.label
			}
			lines = append(lines, line{label, b.found[cell{r.name, name}]})
		}
		if len(r.show) > len(of.show) {
			of.show = r.show
		}
	}
	return of, lines
}

// table prints one heading's lines. Its last columns are the ratio of each line's first figure to that of the first line,
// and how many jobs the line's figures come from.
func (b *benchmark) table(out *strings.Builder, heading string) {
	r, lines := b.lines(heading)
	fmt.Fprintf(out, "\n### %s\n\n%s%s\n\n|  |", heading, strings.ToUpper(r.about[:1]), r.about[1:])
	for _, c := range r.show {
		fmt.Fprintf(out, " %s |", c.title)
	}
	if len(lines) > 1 {
		fmt.Fprintf(out, " %s, to %s |", r.show[0].title, lines[0].label)
	}
	if r.generate == "" {
		out.WriteString(" jobs |")
	}
	head := out.String()[strings.LastIndexByte(out.String(), '\n')+1:]
	out.WriteString("\n|---|" + strings.Repeat("---:|", strings.Count(head, "|")-2) + "\n")
	for _, l := range lines {
		fmt.Fprintf(out, "| %s |", l.label)
		for _, c := range r.show {
			if values := of(l.found, c.metric); len(values) > 0 {
				f := func(v float64) string { return fmt.Sprintf(c.format, v*c.scale) }
				fmt.Fprintf(out, " %s (%s to %s) |", f(median(values)), f(slices.Min(values)), f(slices.Max(values)))
			} else {
				out.WriteString(" – |")
			}
		}
		if len(lines) > 1 {
			out.WriteString(" " + ratio(l.found, lines[0].found, r.show[0].metric) + " |")
		}
		if r.generate == "" {
			fmt.Fprintf(out, " %d |", count(l.found))
		}
		out.WriteString("\n")
	}
}

// ratio is that of the medians.
func ratio(own, first []metrics, metric string) string {
	a, b := of(own, metric), of(first, metric)
	if len(a) == 0 || len(b) == 0 {
		return "–"
	}
	switch r := median(a) / median(b); {
	case r >= 100:
		return fmt.Sprintf("%.0f", r)
	case r >= 0.1:
		return fmt.Sprintf("%.2f", r)
	default:
		return fmt.Sprintf("%.2g", r)
	}
}

func (b *benchmark) jobs() (n int) {
	for _, list := range b.found {
		n += count(list)
	}
	return n
}

// count is exact: the jobs that handlers counted, or that an enqueuer got its reply for.
func count(list []metrics) (n int) {
	for _, m := range list {
		n += int(m["jobs"])
	}
	return n
}

func of(list []metrics, metric string) (values []float64) {
	for _, m := range list {
		if v, ok := m[metric]; ok {
			values = append(values, v)
		}
	}
	return values
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n%2 == 1 {
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}

func rounds(n int) string {
	if n == 1 {
		return "1 round"
	}
	return fmt.Sprintf("%d rounds", n)
}

func (b *benchmark) took() time.Duration { return time.Since(b.began).Round(time.Second) }
