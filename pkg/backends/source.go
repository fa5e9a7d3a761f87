package backends

import (
	"context"
	"os"
)

// Source describes what a node mounts for a volume. It is a closed sum: Device, Export or Directory.
type Source interface{ source() }

// Device is a block device, or an image file that the node attaches as one.
type Device struct {
	// Path is the device node, or the image file when Image is set. It is a hint: Identity is the proof.
	Path  string
	Image bool
	// Identity is what must be true of the device before anything is read from or written to it.
	Identity Identity
	// ReadAheadKiB sets the device's read-ahead; 0 leaves the kernel's default.
	ReadAheadKiB int
}

// Identity tells one device from all others.
type Identity struct {
	// SizeBytes is the least size that the device must have.
	SizeBytes int64
	// Serial is the serial number, WWID or NVMe identifier that the device must report. An image has
	// none: it is known by its inode.
	Serial string
}

// Export is a network filesystem.
type Export struct {
	FSType  string   // the kernel's name, such as nfs4
	Source  string   // such as server:/share
	Options []string // mount options that it always needs
	// Prove, unless nil, looks whether what was mounted is the volume, before anybody sees it: who can write on the server
	// may have led the path elsewhere. The root is open with O_PATH. Kinds: Unavailable for what is not.
	Prove func(ctx context.Context, root *os.File) error
}

// Directory is a directory of a filesystem that this node has mounted already.
type Directory struct {
	Path string
}

func (Device) source()    {}
func (Export) source()    {}
func (Directory) source() {}
