package nfsd

import (
	"cmp"
	"context"
	"os"
	"strings"
)

// Export is a folder that clients can mount.
type Export struct {
	// Path is created if it does not exist. Below /srv it is on the guest's disk. Filesystems other than ext4, xfs and
	// btrfs need an FSID.
	Path string
	// Client is the address or network that may mount it, or * for any. The default is *.
	Client string
	// Options are those of exports(5), for example ro, no_root_squash, sec=sys. They follow the defaults rw,
	// no_subtree_check, root_squash.
	Options []string
	// FSID identifies the export in file handles: a number or a UUID. The default is the filesystem's own.
	FSID string
}

func (e Export) target() string { return cmp.Or(e.Client, "*") + ":" + e.Path }

func (e Export) options() string {
	options := append([]string{"rw", "no_subtree_check", "root_squash"}, e.Options...)
	if e.FSID != "" {
		options = append(options, "fsid="+e.FSID)
	}
	return strings.Join(options, ",")
}

// Export exports a folder, or changes an existing export.
func (s *Server) Export(ctx context.Context, e Export) error {
	if err := os.MkdirAll(e.Path, 0o777); err != nil {
		return err
	}
	if err := tool(ctx, "-o", e.options(), e.target()); err != nil {
		return err
	}
	return flush(ctx)
}

// Unexport removes an export. Clients that have it mounted get errors (ESTALE with NFS 4, EACCES or ESTALE with NFS 3).
func (s *Server) Unexport(ctx context.Context, e Export) error {
	if err := tool(ctx, "-u", e.target()); err != nil {
		return err
	}
	return flush(ctx)
}

func unexportAll(ctx context.Context) error { return tool(ctx, "-ua") }

// flush makes the kernel drop its cache of exports, and ask mountd again.
func flush(ctx context.Context) error { return tool(ctx, "-f") }

// tool runs the program that configures the exports of mountd and the kernel.
func tool(ctx context.Context, args ...string) error {
	return command(ctx, append([]string{"exportfs"}, args...)...) //nolint:misspell // It is called so.
}
