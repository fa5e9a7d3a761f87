package sample_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/backendtest"
	"github.com/stowage-csi/stowage/pkg/backends/sample"
)

// TestCrash opens the backend over the files of a volume with data that a crash has left.
func TestCrash(t *testing.T) {
	for name, row := range map[string]struct {
		leave func(volume string) error // takes the path of the volume's directory
		kept  bool
	}{
		"before Create publishes, or after Delete hides": {func(volume string) error {
			return os.Rename(volume+".json", volume+".part")
		}, false},
		"beside a file of others": {func(volume string) error {
			return os.WriteFile(filepath.Join(filepath.Dir(volume), "lost+found"), nil, 0o600)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := backendtest.Over(sample.Definition(), nil)
			instance := h.Open(t)
			v, err := instance.Controller.Create(t.Context(), backends.Spec{Name: "one"})
			if err != nil {
				t.Fatal(err)
			}
			source, err := instance.Node.Source(t.Context(), backends.Attachment{Handle: v.Handle})
			if err != nil {
				t.Fatal(err)
			}
			path := source.(backends.Directory).Path
			if err := os.WriteFile(filepath.Join(path, "data"), []byte("kept"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := row.leave(path); err != nil {
				t.Fatal(err)
			}
			again := h.Reopen(t, instance)
			_, err = again.Controller.Get(t.Context(), v.Handle)
			_, look := os.Stat(filepath.Join(path, "data"))
			used := again.Node.(backends.Releaser).Used(t.Context(), v.Handle)
			if (err == nil) != row.kept || (look == nil) != row.kept || used != row.kept {
				t.Errorf("after the crash: volume %v, data %v, in use %t; want all kept: %t", err, look, used, row.kept)
			}
		})
	}
}
