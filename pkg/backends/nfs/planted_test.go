package nfs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// plant replaces one of the driver's own folders by a symlink; the server keeps the folder under another name.
func (w *world) plant(folder, target string) {
	w.Helper()
	w.must(os.Rename(w.path(share.HomeName, folder), w.path(share.HomeName, folder+"-before")))
	w.must(os.Symlink(target, w.path(share.HomeName, folder)))
	w.noticed()
}

// A user with write access to the server replaces a folder of the driver's own by a symlink. Then the janitor's
// removals and a deletion's moves would happen elsewhere: on another share, or on the controller's machine.
func TestPlantedFoldersLeadNowhere(t *testing.T) {
	for _, folder := range []string{share.Staging, share.Trash} {
		for name, elsewhere := range map[string]func(w *world) string{
			"controller": func(*world) string { return t.TempDir() },
			"share":      func(w *world) string { return w.path("victim") },
			"server":     func(w *world) string { return filepath.Join(filepath.Dir(w.root), "victim") },
		} {
			t.Run(folder+" leads to the "+name, func(t *testing.T) {
				w := newWorld(t)
				v := w.make(in("pvc-1", "mine", deleteData))
				w.shut()
				target := elsewhere(w)
				key := strings.Repeat("0", 32) + "-" + strings.Repeat("1", 16)
				w.must(os.MkdirAll(filepath.Join(target, key), 0o755))
				kept := filepath.Join(target, key, "kept")
				w.must(os.WriteFile(kept, nil, 0o600))
				record := fmt.Sprintf(`{"version":1,"kind":"snapshot","id":%q,"turn":%q,"sizeBytes":1}`, key[:32], key[33:])
				w.must(os.WriteFile(filepath.Join(target, key+suffix), []byte(record), 0o600))
				if name == "share" { // A link that stays on the share.
					target = "../victim"
				}
				w.plant(folder, target)
				w.hurry(func(p *pace) { p.patience = time.Millisecond })
				genuine, err := w.parse(volumeKind, v.Handle)
				w.must(err)
				for range 3 {
					_, err := w.janitors.round(genuine.address)
					w.fails("a round of the janitor", err, backends.Unavailable, "symlink")
				}
				if _, err := os.Stat(kept); err != nil {
					t.Errorf("what the link leads to was removed: %v", err)
				}
			})
		}
	}
}

// Another item's record in staging, or among the volumes, is not trusted.
func TestRecordsProveTheirNames(t *testing.T) {
	w := newWorld(t)
	v := w.make(in("pvc-1", "mine", deleteData))
	genuine, err := w.parse(volumeKind, v.Handle)
	w.must(err)
	data, err := os.ReadFile(w.path(share.HomeName, share.Volumes, genuine.id+suffix))
	w.must(err)
	other := strings.Repeat("0", 32)
	s, release, err := w.pool.Hold(t.Context(), genuine.address)
	w.must(err)
	defer release()
	h, err := s.Home(false)
	w.must(err)
	for folder, name := range map[string]string{share.Volumes: other, share.Staging: other + "-" + strings.Repeat("1", 16),
		share.Snapshots: genuine.id} {
		w.must(os.WriteFile(w.path(share.HomeName, folder, name+suffix), data, 0o600))
		_, err := read(h, folder, name+suffix)
		w.fails("a record in "+folder, err, backends.Unusable, "renamed")
	}
}

// The members of a group name files: none can be a path.
func TestMembersAreNoPaths(t *testing.T) {
	for _, id := range []string{"../../victim", "", "..", strings.Repeat("A", 32), strings.Repeat("0", 31) + "/"} {
		data := fmt.Sprintf(`{"version":1,"kind":"group","id":%q,"turn":%q,"sizeBytes":1,"members":[{"id":%q}]}`,
			strings.Repeat("0", 32), strings.Repeat("1", 16), id)
		if _, err := decodeRecord([]byte(data), "here"); !backends.Is(err, backends.Unusable) {
			t.Errorf("member %q: got %v, want a failure that is Unusable", id, err)
		}
	}
}
