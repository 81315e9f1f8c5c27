package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// progress is a bar on a terminal, and nothing where the output goes elsewhere.
type progress struct {
	out   io.Writer // nil: nothing is drawn
	label string
	total int
	drawn time.Time
}

const barWidth = 30

func newProgress(out io.Writer, label string, total int) *progress {
	if f, ok := out.(*os.File); !ok || !term.IsTerminal(int(f.Fd())) {
		return &progress{}
	}
	return &progress{out: out, label: label, total: total}
}

// show draws how many are done, though not more often than an eye can follow.
func (p *progress) show(done int) {
	if p.out == nil || done < p.total && time.Since(p.drawn) < 50*time.Millisecond {
		return
	}
	p.drawn = time.Now()
	filled := barWidth * done / max(p.total, 1)
	fmt.Fprintf(p.out, "\r%s [%s%s] %d/%d", p.label, strings.Repeat("=", filled), strings.Repeat(" ", barWidth-filled), done, p.total)
}

// clear removes the bar, so that what follows begins on an empty line.
func (p *progress) clear() {
	if p.out != nil && !p.drawn.IsZero() {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}
