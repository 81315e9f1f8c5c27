//go:build race

package smallage_test

const raceEnabled = true
