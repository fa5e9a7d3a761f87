package ebs

import (
	"os"
	"testing"

	"github.com/stowage-csi/stowage/tests/vm/inside"
)

const (
	mib = 1 << 20
	gib = 1 << 30
)

func TestMain(m *testing.M) { os.Exit(inside.Main(m)) }
