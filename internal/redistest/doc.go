// Package redistest gives tests a real Redis: servers of their own that can be stopped, killed, frozen and restarted, a
// small cluster, and a proxy that breaks connections at chosen points.
//
// A server listens on the loopback interface only, on a free port, and keeps nothing unless AOF asks for it. It ends with
// the test that started it, and with the test binary however that ends (on Linux also after a panic or SIGKILL).
//
// The program is redis-server, or else valkey-server, from PATH; the environment variable SMALLAGE_REDIS_SERVER names
// another, which must become the server itself (exec): signals reach no child of it. Where there is none, the test is
// skipped with the reason; under CI=true it fails, so that a green run means that the tests were run.
//
// Functions and methods that take or hold a testing.TB end the test where they fail, so they are for the test's own
// goroutine.
package redistest
