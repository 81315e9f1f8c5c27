// Command testsummary reads what go test -json prints and writes what a reader wants of it: a line per package, the output
// of what failed, every skipped test with its reason, and how many passed, failed and were skipped. It exits with 1 where
// anything failed, and where no test was run at all.
package main

import (
	"fmt"
	"os"
)

func main() {
	ok, err := summarize(os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testsummary:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}
