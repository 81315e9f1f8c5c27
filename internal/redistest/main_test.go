package redistest_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/smallage/smallage/internal/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(redistest.Main(m)) }
