package smallage_test

import (
	"os"
	"testing"

	"github.com/smallage/smallage/internal/redistest"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m).Run()) }
