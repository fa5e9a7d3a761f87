package ebs_test

import (
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends/backendtest"
	"github.com/stowage-csi/stowage/pkg/backends/ebs"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

func TestConformance(t *testing.T) { backendtest.Run(t, harness()) }

// TestConformanceShared covers volumes that several nodes use at a time.
func TestConformanceShared(t *testing.T) {
	h := harness()
	h.Spec = region.Shared
	backendtest.Run(t, h)
}

func harness() backendtest.Harness {
	return region.Harness(ebs.Definition(),
		func(tb testing.TB) *region.Region { return region.New(tb, region.Quick(), 0) })
}
