package nfs

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/tests/testfs"
)

// Two controllers never have one name at a time, even if nothing can be written any more. A node takes no name.
func TestOneControllerHasTheName(t *testing.T) {
	options := backends.Options{DataDir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}
	first := permitsOf(t, options)
	first.close()
	info, err := os.Stat(filepath.Join(options.DataDir, ownerFile))
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("the file of the name has %v (%v), and may be locked by others than root", info.Mode(), err)
	}
	testfs.Bind(t, options.DataDir, options.DataDir)
	if err := unix.Mount("", options.DataDir, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	second := permitsOf(t, options)
	if second.owner != first.owner {
		t.Errorf("after a restart the name is %q, was %q", second.owner, first.owner)
	}
	if _, err := openPermits(options); !backends.Is(err, backends.Busy) {
		t.Errorf("a controller beside it gets %v, want Busy", err)
	}
	options.NodeOnly = true
	permitsOf(t, options)
}

// permitsOf holds the name until the end of the test, or until it is closed.
func permitsOf(t *testing.T, options backends.Options) *permits {
	t.Helper()
	p, err := openPermits(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	return p
}

// An incomplete name is not used, and is replaced by one that is saved.
func TestHalfANameIsNone(t *testing.T) {
	options := backends.Options{DataDir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}
	if err := os.WriteFile(filepath.Join(options.DataDir, ownerFile), []byte("0123"), 0o600); err != nil {
		t.Fatal(err)
	}
	first := permitsOf(t, options)
	first.close()
	if second := permitsOf(t, options); first.owner == "0123" || second.owner != first.owner {
		t.Errorf("the names are %q and %q, want one that was drawn", first.owner, second.owner)
	}
}
