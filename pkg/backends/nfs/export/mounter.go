package export

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// Mounter reaches exports. Drivers use Kernel.
type Mounter interface {
	// Open mounts the export for this process alone and returns its root. It may hang as long as the kernel waits for the
	// server: the caller gives up on it, and closes a late result.
	//
	// Kinds: Unavailable when the server does not answer, does not export that, or has no such version; Denied when this
	// process may not mount.
	Open(ctx context.Context, address Address) (*Root, error)

	// Source describes a node's mount of a directory of the export; an empty dir is the root. The address has a version.
	// Kinds: Unavailable when the server's name cannot be resolved.
	Source(ctx context.Context, address Address, dir string) (backends.Source, error)

	// SameServer reports whether two names are known to be of one server. False proves nothing: a server may have several
	// addresses, and names that cannot be resolved now.
	SameServer(ctx context.Context, one, other string) bool
}

// Root is a mounted export.
type Root struct {
	// Dir is the root directory, open for reading.
	Dir *os.File
	// Version is the NFS version in use, one of Versions.
	Version string
	// Filesystem names the server's filesystem, which other exports may share; empty if it is unknown.
	Filesystem string
	// Lag is the maximum age of the kernel's information about a file that others change.
	Lag time.Duration
	// Direct says that files which others write must be opened with O_DIRECT: otherwise the kernel's cache of them may be
	// arbitrarily old.
	Direct bool
	// Mount keeps the mount; nil if Dir does.
	Mount *os.File
}

// Close unmounts once no file in it is open any more.
func (r *Root) Close() error {
	err := r.Dir.Close()
	if r.Mount != nil {
		err = errors.Join(err, r.Mount.Close())
	}
	return err
}
