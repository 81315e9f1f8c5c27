//go:build !race

package smallage_test

const raceEnabled = false
