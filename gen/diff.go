package gen

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// Diff writes, as a unified diff, what Write would change, and reports whether it would change anything.
func (o *Output) Diff(w io.Writer, dir string) (differs bool, err error) {
	changes, err := o.Changes()
	if err != nil {
		return false, err
	}
	show := func(path string, content []byte) error {
		old, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		name := Shorter(dir, path)
		from, to := name, name
		if err != nil {
			from = "/dev/null"
		}
		if content == nil {
			to = "/dev/null"
		}
		_, err = io.WriteString(w, unified(from, to, string(plainLines(old)), string(content)))
		return err
	}
	for _, path := range changes.Write {
		if err := show(path, o.Files[path]); err != nil {
			return true, err
		}
	}
	for _, path := range changes.Remove {
		if err := show(path, nil); err != nil {
			return true, err
		}
	}
	return len(changes.Write)+len(changes.Remove) > 0, nil
}

// around is how many unchanged lines a hunk shows on each side of a change.
const around = 3

// edit is one line of a diff: kept (' '), removed ('-') or added ('+').
type edit struct {
	op   byte
	line string
}

// unified returns the unified diff of two texts, and "" where they are equal.
func unified(from, to, old, new string) string {
	if old == new {
		return ""
	}
	edits := script(lines(old), lines(new))
	var b strings.Builder
	fmt.Fprintf(&b, "--- %s\n+++ %s\n", from, to)
	oldLine, newLine := 1, 1
	for i := 0; i < len(edits); {
		next := i
		for next < len(edits) && edits[next].op == ' ' {
			next++
		}
		if next == len(edits) {
			break
		}
		begin := max(i, next-around)
		oldLine += begin - i
		newLine += begin - i
		end := hunkEnd(edits, next)
		oldCount, newCount := 0, 0
		var body strings.Builder
		for _, e := range edits[begin:end] {
			if e.op != '+' {
				oldCount++
			}
			if e.op != '-' {
				newCount++
			}
			body.WriteByte(e.op)
			body.WriteString(e.line)
			if !strings.HasSuffix(e.line, "\n") {
				body.WriteString("\n\\ No newline at end of file\n")
			}
		}
		fmt.Fprintf(&b, "@@ -%s +%s @@\n%s", extent(oldLine, oldCount), extent(newLine, newCount), body.String())
		oldLine += oldCount
		newLine += newCount
		i = end
	}
	return b.String()
}

// hunkEnd is where the hunk of the change at i ends: changes nearer than two contexts share one.
func hunkEnd(edits []edit, i int) int {
	end := i
	for i < len(edits) {
		if edits[i].op != ' ' {
			i++
			end = i
			continue
		}
		if i-end >= 2*around {
			break
		}
		i++
	}
	return min(end+around, len(edits))
}

func extent(line, count int) string {
	if count == 0 {
		line-- // an empty range stands after a line
	}
	if count == 1 {
		return fmt.Sprint(line)
	}
	return fmt.Sprintf("%d,%d", line, count)
}

func lines(s string) []string {
	if s == "" {
		return nil
	}
	list := strings.SplitAfter(s, "\n")
	if list[len(list)-1] == "" {
		list = list[:len(list)-1]
	}
	return list
}

// script returns a shortest list of edits from a to b.
func script(a, b []string) []edit {
	var head, tail []edit
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		head = append(head, edit{' ', a[0]})
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		tail = append(tail, edit{' ', a[len(a)-1]})
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	edits := append(head, middle(a, b)...)
	for i := len(tail) - 1; i >= 0; i-- {
		edits = append(edits, tail[i])
	}
	return edits
}

// most is how many pairs of lines are compared to find what two texts have in common. Beyond, all is replaced.
const most = 16_000_000

func middle(a, b []string) []edit {
	var edits []edit
	if len(a)*len(b) > most {
		for _, line := range a {
			edits = append(edits, edit{'-', line})
		}
		for _, line := range b {
			edits = append(edits, edit{'+', line})
		}
		return edits
	}
	common := make([][]int32, len(a)+1) // of a[i:] and b[j:]
	for i := range common {
		common[i] = make([]int32, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			edits = append(edits, edit{' ', a[i]})
			i++
			j++
		case j == len(b) || i < len(a) && common[i+1][j] >= common[i][j+1]:
			edits = append(edits, edit{'-', a[i]})
			i++
		default:
			edits = append(edits, edit{'+', b[j]})
			j++
		}
	}
	return edits
}
