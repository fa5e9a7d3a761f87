// Package disknode identifies the device node of a disk that is plugged in and unplugged.
package disknode

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/node/device"
)

// Node is the device node of a disk.
type Node struct {
	Path   string
	number uint64
}

// At returns the node at a path.
func At(path string) (Node, error) {
	var stat unix.Stat_t
	if err := unix.Stat(path, &stat); err != nil {
		return Node{}, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return Node{path, stat.Rdev}, nil
}

// Gone reports whether nothing is left of the disk. The kernel removes the node first, and its other information about
// the disk a moment later.
func (n Node) Gone() bool {
	_, err := os.Stat(n.Path)
	return errors.Is(err, fs.ErrNotExist) && device.Gone(unix.Major(n.number), unix.Minor(n.number))
}
