package ebs_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/ebs"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// TestMissingRightIsToldOnce has a policy that does not let the driver ask whether a thing exists.
func TestMissingRightIsToldOnce(t *testing.T) { synctest.Test(t, missingRightIsToldOnce) }

func missingRightIsToldOnce(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	var log bytes.Buffer
	definition := ebs.Definition()
	options := backends.Options{Driver: "ebs.csi.stowage.dev", Config: definition.NewConfig(),
		Log: slog.New(slog.NewTextHandler(&log, nil))}
	w.Configure(&options)
	instance, err := definition.Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	c := instance.Controller
	for _, name := range []string{"one", "another"} {
		if _, err := c.Create(t.Context(), region.Spec(name)); err != nil {
			t.Fatal(err)
		}
	}
	w.Server.Forbid("CreateTags", "DeleteTags")
	for range 3 {
		for _, name := range []string{"one", "another"} {
			if _, err := c.Find(t.Context(), region.Spec(name)); err != nil {
				t.Error(err)
			}
		}
	}
	if told := strings.Count(log.String(), "cannot be asked"); told != 1 {
		t.Errorf("it was told %d times:\n%s", told, log.String())
	}
}
