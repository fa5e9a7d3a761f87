package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// bind bind-mounts a file or folder at the target, which it creates. The flags are MS_REC and MS_RDONLY of mount(2).
func bind(source, target string, flags uintptr) error {
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	if err := mountPoint(target, info.IsDir()); err != nil {
		return err
	}
	if err := unix.Mount(source, target, "", unix.MS_BIND|flags&unix.MS_REC, ""); err != nil {
		return fmt.Errorf("bind %s to %s: %w", source, target, err)
	}
	if flags&unix.MS_RDONLY == 0 {
		return nil
	}
	if err := unix.Mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("make %s read-only: %w", target, err)
	}
	return nil
}

func mountPoint(path string, folder bool) error {
	if folder {
		return os.MkdirAll(path, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return file.Close()
}

// link creates a symbolic link unless it exists.
func link(target, path string) error {
	err := os.Symlink(target, path)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// pivot makes the folder the root of this mount namespace, and unmounts the old root: pivot_root(2), NOTES.
func pivot(root string) error {
	if err := os.Chdir(root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot to %s: %w", root, err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("let go of the old root: %w", err)
	}
	return os.Chdir("/")
}

// hideKernelSettings covers settings of the whole machine with files that the kubelet can change. Otherwise the kubelet
// would change the machine's settings permanently.
func hideKernelSettings() error {
	for setting, value := range map[string]string{
		"vm/overcommit_memory": "1", "vm/panic_on_oom": "0", "kernel/panic": "10", "kernel/panic_on_oops": "1",
		"kernel/keys/root_maxkeys": "1000000", "kernel/keys/root_maxbytes": "25000000",
	} {
		own := filepath.Join("/run/kernel", setting)
		if err := os.MkdirAll(filepath.Dir(own), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(own, []byte(value+"\n"), 0o644); err != nil {
			return err
		}
		target := filepath.Join("/proc/sys", setting)
		if err := unix.Mount(own, target, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("hide %s: %w", target, err)
		}
	}
	return nil
}
