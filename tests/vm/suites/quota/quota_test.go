package quota

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/local"
	"github.com/stowage-csi/stowage/pkg/backends/local/quota"
)

func each(t *testing.T, test func(w *world)) {
	for _, fsType := range []string{"xfs", "ext4"} {
		t.Run(fsType, func(t *testing.T) { test(newWorld(t, fsType)) })
	}
}

// TestSizesAreEnforced checks new volumes, grown ones, clones and restored ones.
func TestSizesAreEnforced(t *testing.T) { each(t, sizesAreEnforced) }

func sizesAreEnforced(w *world) {
	w.up("prjquota")
	one, other := w.create("one", 16*mib), w.create("other", 16*mib)
	w.wantFull(one, 16*mib)
	w.wantFull(other, 16*mib)
	var stat unix.Statfs_t
	w.must(unix.Statfs(w.path(one), &stat))
	if size := int64(stat.Blocks) * stat.Bsize; size != 16*mib {
		w.Errorf("a pod sees %d bytes, want those of its volume", size)
	}

	grown, err := w.f.Expand.Expand(w.Context(), one, backends.CapacityRange{RequiredBytes: 32 * mib})
	w.must(err)
	if grown.CapacityBytes != 32*mib {
		w.Errorf("it has grown to %d", grown.CapacityBytes)
	}
	w.wantFull(one, 16*mib)

	taken, err := w.f.Snapshot.CreateSnapshot(w.Context(),
		backends.SnapshotSpec{Name: "s", Volume: one, Parameters: &local.SnapshotParameters{InUse: "refuse"}})
	w.must(err)
	for name, source := range map[string]func(backends.Spec) (*backends.Volume, error){
		"restored": func(s backends.Spec) (*backends.Volume, error) {
			return w.f.Snapshot.Restore(w.Context(), s, taken.Handle)
		},
		"cloned": func(s backends.Spec) (*backends.Volume, error) { return w.f.Clone.Clone(w.Context(), s, one) },
	} {
		copied, err := source(spec(name, 64*mib))
		w.must(err)
		w.wantFull(copied.Handle, 32*mib)
		w.must(w.instance.Controller.Delete(w.Context(), copied.Handle))
		exact, err := source(spec(name+" whole", 32*mib))
		w.must(err)
		if got := w.write(exact.Handle, 16*mib); got > 2*mib {
			w.Errorf("%s: a full volume took %d bytes more", name, got)
		}
		w.must(w.instance.Controller.Delete(w.Context(), exact.Handle))
	}
}

// TestFilesAreBounded checks that empty files, which take no bytes, do not use up other volumes' inodes. A volume from
// before this limit gets it at the next start.
func TestFilesAreBounded(t *testing.T) { each(t, filesAreBounded) }

func filesAreBounded(w *world) {
	w.up("prjquota")
	one, other := w.create("one", 16*mib), w.create("other", 16*mib)
	w.unlimitFiles(w.project(other), 16*mib)
	w.down()
	w.up("prjquota")
	for _, handle := range []string{one, other} {
		if made := w.empty(handle); made < 1000 || made > 16*mib/1024 {
			w.Errorf("%d empty files fit into 16 MiB, want some thousand", made)
		}
	}
	_, err := w.f.Expand.Expand(w.Context(), one, backends.CapacityRange{RequiredBytes: 64 * mib})
	w.must(err)
	w.must(os.WriteFile(filepath.Join(w.path(one), "one more"), nil, 0o600))
}

// record contains the fields of a volume's record that tests read.
type record struct {
	Project uint32 `json:"project"`
}

func (w *world) project(handle string) uint32 {
	w.Helper()
	text, err := os.ReadFile(filepath.Join(filepath.Dir(w.path(handle)), "record.json"))
	w.must(err)
	var r record
	w.must(json.Unmarshal(text, &r))
	return r.Project
}

// pool opens the pool's directory.
func (w *world) pool() *os.File {
	w.Helper()
	dir, err := os.Open(filepath.Join(w.mounted, "pool"))
	w.must(err)
	w.Cleanup(func() { _ = dir.Close() })
	return dir
}

// TestStartsOver checks that limits survive the process, are restored when they are lost, and are removed with the
// volume. Leftovers of a crash are removed.
func TestStartsOver(t *testing.T) { each(t, startsOver) }

func startsOver(w *world) {
	w.up("prjquota")
	handle := w.create("v", 16*mib)
	project := w.project(handle)
	if project == 0 {
		w.Fatal("the record names no project")
	}
	draft := filepath.Join(w.mounted, "pool", "staging", "cut short")
	w.must(os.Mkdir(draft, 0o700))
	dir, err := os.Open(draft)
	w.must(err)
	_, err = quota.Take(dir)
	w.must(err)
	w.must(os.Mkdir(filepath.Join(draft, "data"), 0o755))
	w.must(dir.Close())
	pool := w.pool()
	w.must(quota.Limit(pool, project, 0))
	w.must(pool.Close())

	w.down()
	w.up("prjquota")
	if _, limit, err := quota.Usage(w.pool(), project); err != nil || limit != 16*mib {
		w.Errorf("the limit is %d, %v", limit, err)
	}
	w.wantFull(handle, 16*mib)
	w.must(w.instance.Controller.Delete(w.Context(), handle))
	if _, limit, err := quota.Usage(w.pool(), project); err != nil || limit != 0 {
		w.Errorf("after the volume the limit is %d, %v", limit, err)
	}
	w.create("v", 16*mib)
	for _, entry := range []string{"staging", "quarantine"} {
		if left, err := filepath.Glob(filepath.Join(w.mounted, "pool", entry, "cut*")); err != nil || len(left) > 0 {
			w.Errorf("%q is left: %v", left, err)
		}
	}
}

// TestQuotasComeAndGo checks that a volume from before the quotas stays unlimited, and is not copied to a volume that
// is smaller than its data. Without quotas, the node reports the volumes that are no longer limited.
func TestQuotasComeAndGo(t *testing.T) { each(t, quotasComeAndGo) }

func quotasComeAndGo(w *world) {
	w.up("rw")
	old := w.create("old", mib)
	if got := w.write(old, 16*mib); got != 16*mib {
		w.Errorf("without quotas a volume took %d bytes", got)
	}
	w.down()

	w.up("prjquota")
	w.wantIssues("")
	if got := w.write(old, 4*mib); got != 4*mib {
		w.Errorf("a volume from before took %d bytes", got)
	}
	if _, err := w.f.Clone.Clone(w.Context(), spec("small", 2*mib), old); !backends.Is(err, backends.OutOfRange) ||
		!strings.Contains(err.Error(), "ask for more") {
		w.Errorf("a clone that is too small: %v", err)
	}
	cloned, err := w.f.Clone.Clone(w.Context(), spec("large", 24*mib), old)
	w.must(err)
	w.wantFull(cloned.Handle, 4*mib)
	w.down()

	w.up("rw")
	w.wantIssues("SizesNotEnforced")
	_, err = w.f.Expand.Expand(w.Context(), cloned.Handle, backends.CapacityRange{RequiredBytes: 32 * mib})
	w.must(err)
	w.down()

	w.up("prjquota")
	w.wantIssues("")
	w.wantFull(cloned.Handle, 8*mib)
}

func (w *world) wantIssues(want string) {
	w.Helper()
	issues, err := w.f.Inspect.Inspect(w.Context())
	w.must(err)
	var got []string
	for _, issue := range issues {
		got = append(got, issue.Reason)
	}
	if strings.Join(got, " ") != want {
		w.Errorf("issues: %+v, want %q", issues, want)
	}
}
