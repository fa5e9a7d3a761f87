package export

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// Mounter reaches exports. Kernel is the one that drivers use.
type Mounter interface {
	// Open mounts the export for this process alone and returns its root. It may hang as long as the kernel waits for
	// the server: the caller gives up on it, and closes what comes late.
	//
	// Kinds: Unavailable when the server does not answer, does not export that, or has no such version; Denied when this
	// process may not mount.
	Open(ctx context.Context, address Address) (*Root, error)

	// Source describes what a node mounts for a directory of the export, which is empty for the root. The address has a
	// version. Kinds: Unavailable when the server's name cannot be resolved.
	Source(ctx context.Context, address Address, dir string) (backends.Source, error)

	// SameServer reports whether two names are of one server, as far as can be known. That they are not it cannot tell: a
	// server may have several addresses, and names that cannot be resolved now.
	SameServer(ctx context.Context, one, other string) bool
}

// Root is an export that is mounted.
type Root struct {
	// Dir is the root directory, open for reading.
	Dir *os.File
	// Version is the version of NFS that is spoken, one of Versions.
	Version string
	// Filesystem names the server's filesystem, which other exports may be of too; empty where nobody knows it.
	Filesystem string
	// Lag is how old what the kernel says about a file may be, where others change it.
	Lag time.Duration
	// Direct says that files which others write must be opened with O_DIRECT: what the kernel remembers of them may be
	// old for as long as it likes.
	Direct bool
	// Mount keeps the mount; nil where Dir does.
	Mount *os.File
}

// Close takes the mount down once nothing in it is open any more.
func (r *Root) Close() error {
	err := r.Dir.Close()
	if r.Mount != nil {
		err = errors.Join(err, r.Mount.Close())
	}
	return err
}
