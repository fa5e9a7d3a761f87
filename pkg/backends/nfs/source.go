package nfs

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/export"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/pkg/params"
	"github.com/stowage-csi/stowage/pkg/safepath"
	"github.com/stowage-csi/stowage/pkg/secret"
)

// Source returns the mount for a node. For a volume that the driver created, the record on the share says where it is,
// and the contents of the PersistentVolume are not trusted. Any other handle is that of a static volume, whose
// attributes say where it is.
//
// Kinds: NotFound; Unsupported for a raw volume; Invalid for mount options that are not allowed, for wrong attributes,
// and for two versions of NFS; Unavailable when the share does not answer or the directory is not there, or when any
// NFS 4 is requested and the share is mounted with version 3.
func (n *nodeSide) Source(ctx context.Context, a backends.Attachment) (result backends.Source, err error) {
	defer annotate(&err, "find the source of volume", a.Handle)
	if err := access("").CheckStaged(a.Type); err != nil {
		return nil, err
	}
	asked, err := checkOptions(a.MountOptions)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(a.Handle, volumeKind.prefix()) {
		return n.static(ctx, a, asked)
	}
	var found atomic.Pointer[spot]
	hd, err := n.engine.parse(volumeKind, a.Handle)
	if err != nil {
		return nil, err
	}
	hd.address.Connection = cmp.Or(connectionOptions(a.MountOptions), hd.address.Connection)
	err = n.engine.at(ctx, hd, "reading a volume's record",
		func(_ context.Context, s *share.Share, h *share.Home, id string) error {
			r, err := n.engine.seenByNode(h, id)
			if err != nil {
				return err
			}
			address, err := nfsVersion{inClass, r.NFSVersion}.choose(s, asked)
			if err != nil {
				return err
			}
			if err := there(s, r.SubDir); err != nil {
				return err
			}
			found.Store(&spot{address: address, dir: r.SubDir, visit: n.engine.visitMade(hd, r.SubDir)})
			return nil
		})
	if err != nil {
		return nil, err
	}
	return n.source(ctx, *found.Load(), a.MountOptions)
}

// source returns the mount for a spot with the options.
func (n *nodeSide) source(ctx context.Context, at spot, options []string) (backends.Source, error) {
	source, err := n.engine.mounter.Source(ctx, at.address, at.dir)
	if exported, ok := source.(backends.Export); ok {
		exported.Options = append(exported.Options, alone(options)...)
		exported.Prove = func(ctx context.Context, root *os.File) error { return n.engine.prove(ctx, at, root) }
		source = exported
	}
	return source, err
}

// there checks that a directory can be mounted. Kinds: Unavailable.
func there(s *share.Share, dir string) error {
	if dir == "" {
		return nil
	}
	file, err := safepath.OpenBeneath(s.Dir(), dir)
	if backends.Is(err, backends.Denied) {
		return nil // A pod may deny everybody access to its directory.
	}
	if err != nil {
		return unreached(s, dir, err)
	}
	closeQuietly(file)
	return nil
}

// staticAttributes are the attributes of a PersistentVolume that was written by hand.
type staticAttributes struct {
	Server     string `param:"server"`
	Share      string `param:"share"`
	SubDir     string `param:"subDir" alias:"subdir"`
	NFSVersion string `param:"nfsvers" enum:"3|4|4.0|4.1|4.2"`
}

// static returns the mount of a volume that the driver did not create, and never changes or deletes.
func (n *nodeSide) static(ctx context.Context, a backends.Attachment, asked string) (backends.Source, error) {
	if a.Attributes["server"] == "" && a.Attributes["share"] == "" {
		return nil, backends.Errorf(backends.NotFound,
			"there is no such volume: a static one needs the attributes server and share")
	}
	var given staticAttributes
	if err := params.Decode(a.Attributes, &given); err != nil {
		return nil, err
	}
	address, err := export.Parse(given.Server, given.Share, given.NFSVersion)
	if err != nil {
		return nil, err
	}
	if given.SubDir = strings.Trim(given.SubDir, "/"); given.SubDir != "" {
		if err := checkSubDir(given.SubDir); err != nil {
			return nil, backends.Errorf(backends.Invalid, "subDir is %q: %w", secret.Option(given.SubDir), err)
		}
	}
	if slices.ContainsFunc(strings.Split(address.Path, "/"),
		func(e string) bool { return strings.EqualFold(e, share.HomeName) }) {
		return nil, backends.Errorf(backends.Invalid, "share is %q: %s is the driver's own",
			secret.Option(address.Path), share.HomeName)
	}
	if err := n.engine.allow(address, within); err != nil {
		return nil, err
	}
	if err := n.engine.checkApart(ctx, address, given.SubDir); err != nil {
		return nil, err
	}
	address.Connection = connectionOptions(a.MountOptions)
	root, rel, err := n.engine.rooted(ctx, address, given.SubDir)
	if err != nil {
		return nil, err
	}
	var found atomic.Pointer[export.Address]
	err = n.engine.pool.With(ctx, address, "looking for a static volume", func(_ context.Context, s *share.Share) error {
		if err := n.engine.checkStatic(s, given.SubDir); err != nil {
			return err
		}
		chosen, err := nfsVersion{inAttributes, given.NFSVersion}.choose(s, asked)
		found.Store(&chosen)
		return err
	})
	if err != nil {
		return nil, err
	}
	at := spot{address: *found.Load(), dir: given.SubDir, visit: n.engine.visitStatic(root, rel), static: true}
	return n.source(ctx, at, a.MountOptions)
}
