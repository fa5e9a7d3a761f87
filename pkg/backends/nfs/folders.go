package nfs

import (
	"errors"
	"io/fs"
	"slices"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// hasFolder fails if a folder is missing, because then the absence of a file in it says nothing. It bypasses the
// client's cache. Kinds: Unavailable then.
func hasFolder(h *share.Home, folder string) error {
	err := h.Refresh(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return missing(folder)
	}
	return err
}

// missing returns the failure for a missing folder, which says nothing about a record. A missing folder of records is
// never made again by itself, because only an operator knows whether it had any. Kinds: Unavailable.
func missing(folder string) error {
	advice := "If somebody has removed it, it is made again: ask again"
	if slices.Contains([]string{share.Volumes, share.Snapshots, share.Groups}, folder) {
		advice = "If it was removed, restore it from a backup. If it was empty, as a backup may leave out empty folders, " +
			"make it again as docs/guides/nfs.md says"
	}
	return backends.Errorf(backends.Unavailable, "there is no folder %s: does the server export something else? %s",
		share.At(folder, ""), advice)
}
