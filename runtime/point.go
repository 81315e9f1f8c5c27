//go:build !(smallagepoints && unix)

package smallage

// point names a place between two calls to Redis. Under the build tag smallagepoints, which only tests use, a process can
// be told to die there; in every other build it is empty and compiled away.
func point(string) {}

// stepPoint is point before or after the current steps of endings.
func stepPoint(string, []*ending) {}
