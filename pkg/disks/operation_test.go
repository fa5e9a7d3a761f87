package disks

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/pkg/disks/method"
	"github.com/stowage-csi/stowage/pkg/disks/report"
	"github.com/stowage-csi/stowage/tests/testfs"
)

// TestWithdrawnMeanwhile withdraws a deletion while its last bytes are written. The volume stays as dirty as it was,
// because the user to whom it is offered may have written since.
func TestWithdrawnMeanwhile(t *testing.T) {
	n, err := openNotes(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dirty := &volumeNote{Offer: "local-1", Dirty: true}
	e := &Engine{notes: n, volumes: map[string]*volumeNote{"disk-1": dirty},
		options: Options{Log: slog.New(slog.DiscardHandler)}}
	deletable := report.Deletable{ID: "d", Volume: "disk-1", Method: method.Zero}
	o := &operation{note: &operationNote{Deletable: deletable, Offer: "local-1"}}
	if err := e.complete(o); err == nil || !strings.Contains(err.Error(), "withdrawn") {
		t.Errorf("a deletion that was withdrawn ends with %v", err)
	}
	if e.volumes["disk-1"] != dirty || o.note.Complete {
		t.Errorf("after a deletion that was withdrawn the notes are %+v and %+v", e.volumes["disk-1"], o.note)
	}
	e.wanted.Deletions = []report.Deletable{deletable}
	if err := e.complete(o); err != nil || e.volumes["disk-1"].Dirty || !o.note.Complete {
		t.Errorf("one that is wanted ends with %v, and leaves %+v", err, e.volumes["disk-1"])
	}
}

// TestSizeThatChanges wipes no device whose size has changed since it was found a moment ago.
func TestSizeThatChanges(t *testing.T) {
	const mib = 1 << 20
	image := filepath.Join(t.TempDir(), "disk.img")
	if err := os.WriteFile(image, make([]byte, mib), 0o600); err != nil {
		t.Fatal(err)
	}
	v := report.Volume{Name: "disk-1", Device: testfs.Attach(t, image), SizeBytes: 2 * mib, Mode: report.Block}
	err := alone(func() error {
		return new(Engine).wipeDevice(context.WithoutCancel(t.Context()), &operation{note: &operationNote{}}, v)
	})
	if err == nil || !strings.Contains(err.Error(), "goes or grows") {
		t.Errorf("a device that was twice as large is wiped with %v", err)
	}
}
