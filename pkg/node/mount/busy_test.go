package mount

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// A descriptor that a process has only because it is being started does not keep a mount, however long the start takes.
// A descriptor that remains open does.
func TestUnmountAwaitsStarts(t *testing.T) {
	for _, stays := range []bool{false, true} {
		dir := folder(t, "target")
		must(t, mountAt(t, Filesystem{Type: "tmpfs", Source: "tmpfs"}, target(t, dir+"/target")))
		syscall.ForkLock.Lock() // as a process start does
		inherited, err := os.Open(dir + "/target")
		must(t, err)
		done := make(chan error, 1)
		go func() { done <- Unmount(t.Context(), dir+"/target") }()
		<-time.After(3 * busyPatience) // the start takes longer than that
		if !stays {
			must(t, inherited.Close())
		}
		syscall.ForkLock.Unlock()
		if err := <-done; backends.Is(err, backends.InUse) != stays || err != nil && !stays {
			t.Errorf("open for good %t: %v", stays, err)
		}
		_ = inherited.Close() // closed already, or open for looking only
	}
}
