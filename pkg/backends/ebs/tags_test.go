package ebs_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/ebs"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// TestTagsAreCounted makes extraTags fill a volume and its snapshot, and then adds one tag too many. A volume keeps
// room for the mark by which Find sees that it still exists.
func TestTagsAreCounted(t *testing.T) { synctest.Test(t, tagsAreCounted) }

func tagsAreCounted(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	with := func(n int) driver {
		return open(t, w, func(c *ebs.Config) {
			c.ExtraTags = map[string]string{}
			for i := range n {
				c.ExtraTags[fmt.Sprint("team-", i)] = "storage"
			}
		})
	}
	spec := region.Spec("v")
	spec.Parameters.(*ebs.Parameters).Tag1 = "by=class"
	full := 50 - 1 - len(spec.Settings) - len([]string{"the class's", "name", "owner", "fingerprint"})
	d := with(full)
	v, err := d.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Find(t.Context(), spec); err != nil || w.Server.Calls()["CreateTags"] == 0 {
		t.Errorf("found with %v, after %v", err, w.Server.Calls())
	}
	for _, row := range []struct {
		what string
		try  func(d driver) error
		room int // for tags
	}{
		{"CreateVolume", func(d driver) error {
			spec.Name = "another"
			_, err := d.Create(t.Context(), spec)
			return err
		}, full},
		{"CreateSnapshot", func(d driver) error {
			_, err := d.f.Snapshot.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "s", Volume: v.Handle})
			return err
		}, 48},
	} {
		sent := w.Server.Calls()[row.what]
		err := row.try(with(row.room + 1))
		if !backends.Is(err, backends.Invalid) || !strings.Contains(fmt.Sprint(err), "leave out 1") ||
			w.Server.Calls()[row.what] != sent {
			t.Errorf("%s with a tag too many: %v after %d requests more, want Invalid and none", row.what, err,
				w.Server.Calls()[row.what]-sent)
		}
		if err := row.try(with(row.room)); err != nil {
			t.Errorf("%s with as many as there is room for: %v", row.what, err)
		}
	}
}
