package orchestrator

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// loop is an attached loop device.
type loop struct {
	name         string // such as loop3
	backing      string // the file's path, with the suffix " (deleted)" if it has no name any more
	major, minor int
}

// loopsOf returns the loop devices whose backing file is, or was, below one of the directories (sysfs-block,
// loop/backing_file).
func loopsOf(dirs []string) ([]loop, error) {
	files, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		return nil, err
	}
	var found []loop
	for _, file := range files {
		l, err := readLoop(file)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
			continue // It was just detached; sysfs returns ENODEV if the file is already open.
		}
		if err != nil {
			return nil, err
		}
		for _, dir := range dirs {
			if under(l.backing, dir) {
				found = append(found, l)
				break
			}
		}
	}
	return found, nil
}

func readLoop(backingFile string) (loop, error) {
	backing, err := os.ReadFile(backingFile)
	if err != nil {
		return loop{}, err
	}
	device := filepath.Dir(filepath.Dir(backingFile))
	number, err := os.ReadFile(filepath.Join(device, "dev"))
	if err != nil {
		return loop{}, err
	}
	l := loop{name: filepath.Base(device), backing: strings.TrimSuffix(string(backing), "\n")}
	if _, err := fmt.Sscanf(string(number), "%d:%d", &l.major, &l.minor); err != nil {
		return loop{}, fmt.Errorf("%s/dev: %w", device, err)
	}
	return l, nil
}

// detach frees the loop device unless it has another file by now: unmounting may have freed it, and the next attached
// file may get its number. An open device keeps its file.
func (l loop) detach() error {
	device, err := os.OpenFile("/dev/"+l.name, os.O_RDWR, 0)
	if errors.Is(err, unix.ENXIO) {
		return nil // it is being freed
	}
	if err != nil {
		return err
	}
	if now, err := readLoop(filepath.Join("/sys/block", l.name, "loop/backing_file")); err != nil ||
		now.file() != l.file() {
		return device.Close()
	}
	if err := unix.IoctlSetInt(int(device.Fd()), unix.LOOP_CLR_FD, 0); err != nil && !errors.Is(err, unix.ENXIO) {
		return errors.Join(fmt.Errorf("detach %s: %w", l.name, err), device.Close())
	}
	return device.Close()
}

// file returns the path of the file, which may have no name any more.
func (l loop) file() string { return strings.TrimSuffix(l.backing, " (deleted)") }
