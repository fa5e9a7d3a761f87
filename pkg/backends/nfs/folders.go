package nfs

import (
	"cmp"
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

// remade returns the folders that a janitor creates again if they are missing: on a share of an earlier version of the
// driver, after a user has removed them, or after the restore of a backup that leaves out empty folders. Those of the
// trash come first, because a full share may have room for no others. Folders of records are not among them, because
// only an operator knows whether they had any. That of the claims is created only while there is no volume. The folder
// of the permits is created with the next permit.
func remade() []string {
	return []string{share.Trash, share.Burials, share.Staging, share.Claims, share.Making, share.Retained}
}

// makeFolders creates missing folders, and goes on after a failure.
func makeFolders(h *share.Home) (lost error) {
	for _, folder := range remade() {
		err := h.Refresh(folder)
		if errors.Is(err, fs.ErrNotExist) {
			err = makeFolder(h, folder)
		}
		lost = errors.Join(lost, err)
	}
	return lost
}

// makeFolder creates a missing folder. That of the claims had one for each volume, and for each deleted one whose
// directory is in its place. If an empty one replaced it, deleted volumes would leave their data, and volumes could be
// created inside others. Kinds: Unavailable for the claims on a share with such volumes.
func makeFolder(h *share.Home, folder string) error {
	if err := h.Check(); err != nil {
		return err
	}
	if folder == share.Claims {
		if err := hadNoClaims(h); err != nil {
			return err
		}
	}
	return h.MakeFolder(folder)
}

// hadNoClaims fails unless no item of the share can have had a claim. Kinds: Unavailable.
func hadNoClaims(h *share.Home) error {
	for _, folder := range []string{share.Volumes, share.Burials, share.Trash} {
		if err := hasFolder(h, folder); err != nil {
			return err
		}
		if names, err := h.Names(folder, suffix); err != nil || len(names) > 0 {
			return cmp.Or(err, missing(share.Claims))
		}
	}
	return nil
}

// orMissing replaces a failure that comes from a missing folder, and has the janitor create that folder. Kinds:
// Unavailable then.
func (e *engine) orMissing(h *share.Home, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, folder := range remade() {
		if errors.Is(h.Refresh(folder), fs.ErrNotExist) {
			e.janitors.add(h.Address())
			return missing(folder)
		}
	}
	return err
}

// missing returns the failure for a missing folder, which says nothing about a record. Kinds: Unavailable.
func missing(folder string) error {
	advice := "If somebody has removed it, it is made again: ask again"
	switch {
	case folder == share.Claims:
		advice = "It is made again only on a share without volumes: on any other, restore it from a backup, with its links"
	case !slices.Contains(remade(), folder):
		advice = "If it was removed, restore it from a backup. If it was empty, as a backup may leave out empty folders, " +
			"make it again as docs/guides/nfs.md says"
	}
	return backends.Errorf(backends.Unavailable, "there is no folder %s: does the server export something else? %s",
		share.At(folder, ""), advice)
}
