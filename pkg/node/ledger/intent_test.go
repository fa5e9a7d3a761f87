package ledger

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
)

func openIntents(t *testing.T, dir string) *Intents {
	t.Helper()
	i, err := OpenIntents(dir)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func TestIntent(t *testing.T) {
	dir, image := t.TempDir(), filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	intent := Intent{Volume: "../a", FSType: "xfs", Identity: "inode 7", Image: image}
	i := openIntents(t, dir)
	if i.Stands(intent) {
		t.Error("an intent stands that was never recorded")
	}
	if err := i.Record(intent); err != nil {
		t.Fatal(err)
	}
	i = openIntents(t, dir)
	if !i.Stands(intent) {
		t.Error("an intent did not survive the process")
	}
	for _, other := range []Intent{
		{"b", "xfs", "inode 7", image}, {"../a", "ext4", "inode 7", image}, {"../a", "xfs", "inode 8", image}, {"../a", "xfs", "inode 7", ""},
	} {
		if i.Stands(other) {
			t.Errorf("%+v stands for %+v", intent, other)
		}
	}
	for range 2 {
		if err := i.Remove(intent.Volume); err != nil || i.Stands(intent) {
			t.Errorf("after Remove (%v) the intent stands: %v", err, i.Stands(intent))
		}
	}
}

func TestIntentsAreClearedUp(t *testing.T) {
	dir := t.TempDir()
	gone := Intent{Volume: "gone", Image: filepath.Join(dir, "no such image")}
	disk := Intent{Volume: "disk", Identity: "serial 1"}
	i := openIntents(t, dir)
	for _, intent := range []Intent{gone, disk} {
		if err := i.Record(intent); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{i.path("half") + tempEnding, i.path("garbage")} {
		if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	i = openIntents(t, dir)
	if i.Stands(gone) || !i.Stands(disk) || i.Stands(Intent{Volume: "garbage"}) {
		t.Errorf("after a start stand: gone %v, disk %v", i.Stands(gone), i.Stands(disk))
	}
	if left := names(t, i.dir); len(left) != 2 {
		t.Errorf("left are %v", left)
	}
	// The ledger beside it takes no notice.
	if l, report := open(t, dir, "boot"); l.Volumes() != 0 || report.SetAside != nil {
		t.Errorf("the ledger found %+v", report)
	}
}

func TestIntentThatCannotBeWritten(t *testing.T) {
	i := openIntents(t, t.TempDir())
	if err := os.RemoveAll(i.dir); err != nil {
		t.Fatal(err)
	}
	if err := i.Record(Intent{Volume: "a"}); !backends.Is(err, backends.Unavailable) || i.Stands(Intent{Volume: "a"}) {
		t.Errorf("Record gave %v, want Unavailable", err)
	}
}
