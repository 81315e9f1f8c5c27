package crashtest_test

import (
	"flag"
	"runtime"
	"strconv"
	"testing"

	"go.uber.org/goleak"

	"github.com/smallage/smallage/internal/crashtest"
	"github.com/smallage/smallage/internal/redistest"
)

func TestMain(m *testing.M) {
	flag.Parse()
	// These tests wait for leases far more than they compute.
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		_ = parallel.Value.Set("24")
	}
	goleak.VerifyTestMain(withProgram{redistest.Main(m)})
}

// withProgram removes the worker program after the tests.
type withProgram struct{ redistest.Runner }

func (p withProgram) Run() int {
	defer crashtest.RemoveProgram()
	return p.Runner.Run()
}
