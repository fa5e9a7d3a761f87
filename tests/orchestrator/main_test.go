package orchestrator

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) { os.Exit(Isolate(m.Run)) }
