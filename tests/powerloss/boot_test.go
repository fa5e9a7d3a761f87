package powerloss

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// bootFile contains the kernel's ID of the current boot.
const bootFile = "/proc/sys/kernel/random/boot_id"

// newBoots lets the test set the boot ID: a power loss ends a boot. The ID is visible only in this process, which has
// its own mount namespace.
func newBoots(t *testing.T) (boot func(id string)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "boot-id")
	boot = func(id string) { must(t, os.WriteFile(path, []byte(id+"\n"), 0o600)) }
	boot("the boot that ended")
	must(t, unix.Mount(path, bootFile, "", unix.MS_BIND, ""))
	t.Cleanup(func() { must(t, unix.Unmount(bootFile, unix.MNT_DETACH)) })
	return boot
}
