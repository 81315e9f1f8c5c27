package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// event is one line of go test -json.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
	Elapsed float64
}

type summary struct {
	out     io.Writer
	printed map[string][]string // what a running test or package has printed so far, by package and test
	parents map[string]bool     // tests that have subtests: not counted themselves
	passed  int
	failed  int
	skipped []string
	broken  bool // a package failed, be it only to build
}

// summarize reports whether every test passed or was skipped, and at least one passed.
func summarize(in io.Reader, out io.Writer) (bool, error) {
	s := summary{out: out, printed: make(map[string][]string), parents: make(map[string]bool)}
	r := bufio.NewReader(in)
	for {
		line, err := r.ReadString('\n')
		if line != "" {
			s.line(line)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return false, fmt.Errorf("read test events: %w", err)
		}
	}
	return s.end(), nil
}

func (s *summary) line(text string) {
	var e event
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		fmt.Fprint(s.out, text) // what is not an event is for the reader as it is
		return
	}
	key := e.Package + "\x00" + e.Test
	switch e.Action {
	case "build-output":
		fmt.Fprint(s.out, e.Output)
	case "output":
		s.printed[key] = append(s.printed[key], e.Output)
	case "run":
		for name := e.Test; ; {
			slash := strings.LastIndexByte(name, '/')
			if slash < 0 {
				break
			}
			name = name[:slash]
			s.parents[e.Package+"\x00"+name] = true
		}
	case "pass", "fail", "skip":
		if e.Test == "" {
			s.endPackage(e)
		} else {
			s.endTest(e, key)
		}
		delete(s.printed, key)
	}
}

func (s *summary) endTest(e event, key string) {
	leaf := !s.parents[key]
	switch {
	case e.Action == "fail":
		if leaf {
			s.failed++
		}
		fmt.Fprint(s.out, strings.Join(s.printed[key], ""))
	case leaf && e.Action == "pass":
		s.passed++
	case leaf:
		s.skipped = append(s.skipped, fmt.Sprintf("%s %s: %s", e.Package, e.Test, reason(s.printed[key])))
	}
}

func (s *summary) endPackage(e event) {
	switch e.Action {
	case "fail":
		s.broken = true
		// A panic or a data race is printed in the package's name, or in that of a test that never ended.
		var keys []string
		for key := range s.printed {
			if strings.HasPrefix(key, e.Package+"\x00") {
				keys = append(keys, key)
			}
		}
		slices.Sort(keys)
		for _, key := range keys {
			fmt.Fprint(s.out, strings.Join(s.printed[key], ""))
			delete(s.printed, key)
		}
		fmt.Fprintf(s.out, "FAIL\t%s\t%.1fs\n", e.Package, e.Elapsed)
	case "pass":
		fmt.Fprintf(s.out, "ok\t%s\t%.1fs\n", e.Package, e.Elapsed)
	case "skip":
		fmt.Fprintf(s.out, "?\t%s\t[no test files]\n", e.Package)
	}
}

// reason is what a skipped test printed, without the runner's own lines.
func reason(printed []string) string {
	var lines []string
	for _, text := range printed {
		text = strings.TrimSpace(text)
		if text != "" && !strings.HasPrefix(text, "=== ") && !strings.HasPrefix(text, "--- ") {
			lines = append(lines, text)
		}
	}
	return strings.Join(lines, " ")
}

func (s *summary) end() bool {
	slices.Sort(s.skipped)
	for _, text := range s.skipped {
		fmt.Fprintln(s.out, "SKIPPED", text)
	}
	fmt.Fprintf(s.out, "\n%d passed, %d failed, %d skipped\n", s.passed, s.failed, len(s.skipped))
	return s.failed == 0 && !s.broken && s.passed > 0
}
