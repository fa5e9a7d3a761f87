package backends

import (
	"context"
	"os"
)

// Source describes what a node mounts for a volume. Its only types are Device, Export and Directory.
type Source interface{ source() }

// Device is a block device, or an image file that the node attaches as one.
type Device struct {
	// Path is the device node, or the image file when Image is set. It is a hint: Identity is the proof. An image file or
	// its directory should be named after the volume's handle, perhaps with an ending after a dot: once the image is
	// deleted and the node's record lost, only the name proves that a loop device was the volume's.
	Path  string
	Image bool
	// Identity is what must be true of the device before it is read or written.
	Identity Identity
	// ReadAheadKiB sets the device's read-ahead; 0 leaves the kernel's default.
	ReadAheadKiB int
}

// Identity distinguishes a device from all others.
type Identity struct {
	// SizeBytes is the minimum size of the device.
	SizeBytes int64
	// Serial is the serial number, WWID or NVMe identifier that the device must report. It is empty for an image, which is
	// identified by its inode.
	Serial string
}

// Export is a network filesystem.
type Export struct {
	FSType  string   // the kernel's name, such as nfs4
	Source  string   // such as server:/share
	Options []string // mount options that it always needs
	// Prove, unless nil, checks that the mounted filesystem is the volume, before it becomes visible: a user with write
	// access to the server may have redirected the path. The root is open with O_PATH. Kinds: Unavailable for what is not.
	Prove func(ctx context.Context, root *os.File) error
}

// Directory is a directory on a filesystem that this node has already mounted.
type Directory struct {
	Path string
}

func (Device) source()    {}
func (Export) source()    {}
func (Directory) source() {}
