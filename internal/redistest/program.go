package redistest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// programVariable names the environment variable that chooses the server program.
const programVariable = "SMALLAGE_REDIS_SERVER"

// findProgram returns the server program, or an error that says what to install.
func findProgram() (string, error) {
	if name := os.Getenv(programVariable); name != "" {
		path, err := exec.LookPath(name)
		if err != nil {
			return "", fmt.Errorf("%s=%s: %w", programVariable, name, err)
		}
		return path, nil
	}
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("this test needs a real server and there is no redis-server on PATH: install Redis 6.2 or newer, " +
		"or Valkey (on Debian and Ubuntu: apt-get install redis-server), or set " + programVariable + " to the program")
}

// requireProgram ends the test where there is no server program: as failed on CI, where a skipped test would pass for
// one that was run, and as skipped elsewhere.
func requireProgram(t testing.TB) string {
	t.Helper()
	program, err := findProgram()
	if err == nil {
		return program
	}
	if os.Getenv("CI") == "true" {
		t.Fatal(err)
	}
	t.Skip(err)
	return ""
}
