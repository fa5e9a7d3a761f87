package quota

import (
	"os"
	"testing"

	"github.com/stowage-csi/stowage/tests/vm/inside"
)

func TestMain(m *testing.M) { os.Exit(inside.Main(m)) }
