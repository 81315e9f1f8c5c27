package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/smallage/smallage/gen"
)

const (
	statusOK = iota
	statusFailed
	statusUsage
)

const usage = `usage: smallagegen [flags] [packages]

Smallagegen writes smallage_gen.go for every package with //smallage:task functions. Packages are named as for the go
command: ./... is every package below the current folder; the default is the package in it.

flags:
`

// flags are what the command line says.
type flags struct {
	check, list, json, verbose, version bool
	tags                                string
}

// run is the whole command, without the process around it.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	f, patterns, status := parse(args, stderr)
	if status >= 0 {
		return status
	}
	if f.version {
		fmt.Fprintln(stdout, version())
		return statusOK
	}
	dir, err := os.Getwd()
	if err != nil {
		return fail(stderr, fmt.Errorf("find the current folder: %w", err))
	}
	cache, err := gen.CacheFolder()
	if err != nil {
		return fail(stderr, err)
	}
	out, err := gen.Generate(ctx, gen.Options{
		Dir: dir, Patterns: patterns, Tags: splitTags(f.tags), GoGenerate: os.Getenv("GOFILE") != "", Check: f.check, Cache: cache,
	})
	if ctx.Err() != nil { // whatever else it says
		return fail(stderr, errors.New("interrupted; nothing was written"))
	}
	if err != nil {
		return fail(stderr, err)
	}
	if f.verbose {
		describeLoad(stderr, out)
	}
	if len(out.Diagnostics) > 0 {
		for _, d := range out.Diagnostics {
			fmt.Fprintln(stderr, d.Relative(dir))
		}
		return statusFailed
	}
	switch {
	case f.list:
		return list(f, out, stdout, stderr)
	case f.check:
		return check(out, dir, stdout, stderr)
	}
	return write(f, out, dir, stderr)
}

// parse reads the command line. A status of 0 or more ends the run.
func parse(args []string, stderr io.Writer) (f flags, patterns []string, status int) {
	set := flag.NewFlagSet("smallagegen", flag.ContinueOnError)
	set.SetOutput(stderr)
	set.Usage = func() {
		fmt.Fprint(stderr, usage)
		set.PrintDefaults()
	}
	set.BoolVar(&f.check, "check", false, "write nothing; print a unified diff and exit 1 where something would change")
	set.BoolVar(&f.list, "list", false, "write nothing; print the tasks")
	set.BoolVar(&f.json, "json", false, "with -list: print them as JSON")
	set.BoolVar(&f.verbose, "v", false, "say what was loaded and written, and how long it took")
	set.BoolVar(&f.version, "version", false, "print the version and exit")
	set.StringVar(&f.tags, "tags", "", "comma-separated build `tags`, in addition to those of GOFLAGS")
	if err := set.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return f, nil, statusOK
		}
		return f, nil, statusUsage
	}
	for _, arg := range set.Args() {
		if strings.HasPrefix(arg, "-") {
			fmt.Fprintf(stderr, "smallagegen: the flag %s comes after a package; write flags first\n", arg)
			return f, nil, statusUsage
		}
	}
	switch {
	case f.json && !f.list:
		fmt.Fprintln(stderr, "smallagegen: -json goes with -list; write smallagegen -list -json")
		return f, nil, statusUsage
	case f.list && f.check:
		fmt.Fprintln(stderr, "smallagegen: -list and -check exclude each other; write one of them")
		return f, nil, statusUsage
	}
	return f, set.Args(), -1
}

func splitTags(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
}

func fail(stderr io.Writer, err error) int {
	fmt.Fprintln(stderr, "smallagegen:", err)
	return statusFailed
}

func list(f flags, out *gen.Output, stdout, stderr io.Writer) int {
	write := gen.List
	if f.json {
		write = gen.ListJSON
	}
	if err := write(stdout, out.Tasks); err != nil {
		return fail(stderr, fmt.Errorf("print the list: %w", err))
	}
	return statusOK
}

func check(out *gen.Output, dir string, stdout, stderr io.Writer) int {
	differs, err := out.Diff(stdout, dir)
	if err != nil {
		return fail(stderr, fmt.Errorf("compare with the files on disk: %w", err))
	}
	if differs {
		fmt.Fprintln(stderr, "smallagegen: generated files are not up to date; run smallagegen and commit what it writes")
		return statusFailed
	}
	return statusOK
}

func write(f flags, out *gen.Output, dir string, stderr io.Writer) int {
	start := time.Now()
	done, err := out.Write()
	if f.verbose {
		for _, path := range done.Write {
			fmt.Fprintln(stderr, "wrote", gen.Shorter(dir, path))
		}
		for _, path := range done.Remove {
			fmt.Fprintln(stderr, "removed", gen.Shorter(dir, path))
		}
		fmt.Fprintf(stderr, "%d written, %d unchanged, %d removed in %v\n",
			len(done.Write), len(out.Files)-len(done.Write), len(done.Remove), time.Since(start).Round(time.Millisecond))
	}
	if err != nil {
		return fail(stderr, err)
	}
	return statusOK
}

func describeLoad(w io.Writer, out *gen.Output) {
	for _, path := range out.Packages {
		fmt.Fprintln(w, "loaded", path)
	}
	fmt.Fprintf(w, "%d packages loaded in %v, %d tasks made in %v, %d of %d files as an earlier run rendered them\n",
		len(out.Packages), out.Loading.Round(time.Millisecond), len(out.Tasks), out.Making.Round(time.Millisecond),
		out.Recalled, len(out.Files))
}

// version is what the Go toolchain recorded in the binary.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "smallagegen (built without module information)"
	}
	of := info.Main.Version
	const module = "github.com/smallage/smallage"
	if info.Main.Path != module {
		for _, dep := range info.Deps {
			if dep.Path == module {
				of = dep.Version
			}
		}
	}
	if of == "" {
		of = "(devel)"
	}
	return "smallagegen " + of + " " + info.GoVersion
}
