// Command worker is the program that the crash tests run, kill, freeze and cut off.
package main

import (
	"fmt"
	"os"

	"github.com/smallage/smallage/internal/crashtest"
)

func main() {
	if err := crashtest.RunWorker(); err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
}
