//go:build race

package crashtest

// raceEnabled has the worker program built as the tests are.
const raceEnabled = true
