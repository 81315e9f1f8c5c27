package main

import (
	"fmt"
	"hash/fnv"
	"html"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// flame draws a CPU profile as a flame graph: every box is a function, as wide as its share of the time, above what it
// calls.
func flame(profiles []string, out string) error {
	text, err := exec.Command("go", append([]string{"tool", "pprof", "-traces"}, profiles...)...).Output()
	if err != nil {
		return fmt.Errorf("read %v: %w", profiles, err)
	}
	root := &frame{name: "all"}
	for _, trace := range strings.Split(string(text), "-----------+") {
		root.add(trace)
	}
	if root.time == 0 {
		return fmt.Errorf("%v hold no samples", profiles)
	}
	return os.WriteFile(out, []byte(root.picture()), 0o644)
}

type frame struct {
	name  string
	time  time.Duration
	calls []*frame
}

// add takes one stack: a duration and the functions, the innermost first.
func (f *frame) add(trace string) {
	var took time.Duration
	var stack []string
	for line := range strings.Lines(trace) {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "---") {
			continue
		}
		if took == 0 {
			if took, _ = time.ParseDuration(words[0]); took == 0 {
				continue
			}
			words = words[1:]
		}
		if len(words) > 0 {
			stack = append(stack, strings.TrimSuffix(strings.Join(words, " "), " (inline)"))
		}
	}
	f.time += took
	at := f
	for _, name := range slices.Backward(stack) {
		i := slices.IndexFunc(at.calls, func(c *frame) bool { return c.name == name })
		if i < 0 {
			i = len(at.calls)
			at.calls = append(at.calls, &frame{name: name})
		}
		at = at.calls[i]
		at.time += took
	}
}

const (
	flameWidth  = 1400.0
	flameHeight = 17.0 // of one frame
	flameLeast  = 1.5  // narrower frames are left out
)

func (f *frame) picture() string {
	var boxes strings.Builder
	depth := f.draw(&boxes, 0, 0, flameWidth/float64(f.time))
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="monospace" font-size="11">
<rect width="100%%" height="100%%" fill="#fff"/>
%s</svg>
`, flameWidth, float64(depth+1)*flameHeight, boxes.String())
}

func (f *frame) draw(out *strings.Builder, x float64, depth int, scale float64) (deepest int) {
	width := float64(f.time) * scale
	if width < flameLeast {
		return depth
	}
	name := f.name
	if i := strings.LastIndexByte(strings.SplitN(name, "[", 2)[0], '/'); i >= 0 {
		name = name[i+1:]
	}
	if strings.HasPrefix(f.name, "github.com/smallage/smallage/runtime") {
		name = "smallage" + strings.TrimPrefix(name, "runtime") // its folder's name is that of Go's own package
	}
	share := float64(f.time) * scale / flameWidth * 100
	fmt.Fprintf(out, `<g><title>%s, %.1f %%</title><rect x="%.1f" y="%.0f" width="%.1f" height="%.0f" fill="%s" stroke="#fff" stroke-width=".5"/>`,
		html.EscapeString(f.name), share, x, float64(depth)*flameHeight, width, flameHeight, colour(f.name))
	if letters := int(width/6.8) - 1; letters > 2 {
		fmt.Fprintf(out, `<text x="%.1f" y="%.0f">%s</text>`, x+2, float64(depth)*flameHeight+12, html.EscapeString(name[:min(len(name), letters)]))
	}
	out.WriteString("</g>\n")
	slices.SortFunc(f.calls, func(a, b *frame) int { return strings.Compare(a.name, b.name) })
	deepest = depth
	for _, c := range f.calls {
		deepest = max(deepest, c.draw(out, x, depth+1, scale))
		x += float64(c.time) * scale
	}
	return deepest
}

// colour tells Smallage's functions (green) from the Redis client's (orange), the Go runtime's (grey) and others.
func colour(name string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	shade := int(h.Sum32() % 30)
	switch {
	case strings.Contains(name, "smallage"):
		return fmt.Sprintf("hsl(140 50%% %d%%)", 55+shade/2)
	case strings.Contains(name, "go-redis"):
		return fmt.Sprintf("hsl(30 85%% %d%%)", 62+shade/2)
	case strings.HasPrefix(name, "runtime."), strings.HasPrefix(name, "internal/runtime"):
		return fmt.Sprintf("hsl(220 8%% %d%%)", 70+shade/2)
	}
	return fmt.Sprintf("hsl(200 45%% %d%%)", 68+shade/2)
}
