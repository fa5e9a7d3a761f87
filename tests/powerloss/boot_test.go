package powerloss

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// bootFile is where the kernel tells this boot from all others.
const bootFile = "/proc/sys/kernel/random/boot_id"

// newBoots lets the test say which boot this is: a power loss ends one. It holds for this process only, which has a
// mount namespace of its own.
func newBoots(t *testing.T) (boot func(id string)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "boot-id")
	boot = func(id string) { must(t, os.WriteFile(path, []byte(id+"\n"), 0o600)) }
	boot("the boot that ended")
	must(t, unix.Mount(path, bootFile, "", unix.MS_BIND, ""))
	t.Cleanup(func() { must(t, unix.Unmount(bootFile, unix.MNT_DETACH)) })
	return boot
}
