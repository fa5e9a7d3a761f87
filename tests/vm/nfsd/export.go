package nfsd

import (
	"cmp"
	"context"
	"os"
	"strings"
)

// Export is a folder that clients may mount.
type Export struct {
	// Path is made when it is not there. Below /srv it is on the guest's disk; other filesystems than ext4, xfs and
	// btrfs need an FSID.
	Path string
	// Client is who may mount it: an address, a network or *, which an empty one stands for.
	Client string
	// Options are exports(5)'s: ro, no_root_squash, sec=sys. Those that follow come before them: rw, no_subtree_check,
	// root_squash.
	Options []string
	// FSID is what file handles know the export by: a number or a UUID. Empty stands for the filesystem's own.
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

// Export exports a folder, or exports it in another way than before.
func (s *Server) Export(ctx context.Context, e Export) error {
	if err := os.MkdirAll(e.Path, 0o777); err != nil {
		return err
	}
	if err := tool(ctx, "-o", e.options(), e.target()); err != nil {
		return err
	}
	return flush(ctx)
}

// Unexport takes an export away: clients that have it mounted get errors (ESTALE with NFS 4, EACCES or ESTALE with NFS
// 3).
func (s *Server) Unexport(ctx context.Context, e Export) error {
	if err := tool(ctx, "-u", e.target()); err != nil {
		return err
	}
	return flush(ctx)
}

func unexportAll(ctx context.Context) error { return tool(ctx, "-ua") }

// flush makes the kernel forget what it knows of exports, and ask mountd again.
func flush(ctx context.Context) error { return tool(ctx, "-f") }

// tool runs the program that tells mountd and the kernel what is exported.
func tool(ctx context.Context, args ...string) error {
	return command(ctx, append([]string{"exportfs"}, args...)...) //nolint:misspell // It is called so.
}
