package leftovers

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/tests/attached"
)

// file identifies a file wherever it is mounted: a loop device shows the path of its backing file in namespaces that
// are gone.
type file struct{ device, inode uint64 }

// DetachLoops detaches the loop devices that Loops lists.
func DetachLoops(folder string) error {
	loops, err := Loops(folder)
	if err != nil {
		return err
	}
	for _, path := range loops {
		err := withDevice(path, func(fd int) error { return unix.IoctlSetInt(fd, unix.LOOP_CLR_FD, 0) })
		if err != nil && !errors.Is(err, unix.ENXIO) {
			return err
		}
	}
	return nil
}

// Loops lists the loop devices whose backing file is below the folder, and those over such a loop device: the kubelet
// puts one over each raw block volume. The upper ones come first, because they keep the lower ones in use.
func Loops(folder string) ([]string, error) {
	files, err := filesBelow(folder)
	var all []string
	for err == nil && len(files) > 0 {
		var found []string
		if found, err = loopsOver(files); err == nil {
			all = append(found, all...)
			files, err = nodesOf(found)
		}
	}
	return all, err
}

// loopsOver lists the loop devices whose backing file is one of the files.
func loopsOver(files map[file]bool) ([]string, error) {
	devices, err := filepath.Glob("/sys/block/loop*/loop") // Those that have a backing file.
	if err != nil {
		return nil, err
	}
	var loops []string
	for _, dir := range devices {
		path := filepath.Join("/dev", filepath.Base(filepath.Dir(dir)))
		info, err := attached.Status(path)
		if failed, ok := errors.AsType[*fs.PathError](err); ok && !isGone(failed) {
			return nil, failed
		}
		// The filesystem of the backing file answers. A device that fails, or does not answer in time, has none of the files,
		// because they were all read just now.
		if err == nil && files[file{info.Device, info.Inode}] {
			loops = append(loops, path)
		}
	}
	return loops, nil
}

// isGone reports whether a loop device cannot be opened because it was detached meanwhile, or because its file is on a
// server that is gone, and thus not below a folder of this machine.
func isGone(err error) bool {
	return errors.Is(err, unix.ENXIO) || errors.Is(err, unix.ENOTCONN) || errors.Is(err, fs.ErrNotExist)
}

// nodesOf returns the device nodes as files.
func nodesOf(devices []string) (map[file]bool, error) {
	nodes := map[file]bool{}
	for _, path := range devices {
		var stat unix.Stat_t
		if err := unix.Stat(path, &stat); err != nil {
			return nil, os.NewSyscallError("stat", err)
		}
		nodes[file{stat.Dev, stat.Ino}] = true
	}
	return nodes, nil
}

func withDevice(path string, use func(fd int) error) error {
	device, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = device.Close() }()
	return use(int(device.Fd()))
}

func filesBelow(folder string) (map[file]bool, error) {
	files := map[file]bool{}
	err := filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			files[file{stat.Dev, stat.Ino}] = true
		}
		return nil
	})
	return files, err
}
