package node

import (
	"os"
	"path/filepath"

	"github.com/stowage-csi/stowage/pkg/node/ledger"
)

// samePath reports whether two paths are the same apart from symlinks in their parents. Paths that were adopted from
// the mount table contain no symlinks.
func samePath(a, b string) bool {
	if a == b {
		return true
	}
	if filepath.Base(a) != filepath.Base(b) {
		return false
	}
	one, err := os.Stat(filepath.Dir(a))
	if err != nil {
		return false
	}
	other, err := os.Stat(filepath.Dir(b))
	return err == nil && os.SameFile(one, other)
}

// asRecorded returns the recorded staging path of a volume if the path is the same, and otherwise the path itself. The
// kubelet may have been given its directory by another name since, as through a symlink.
func asRecorded(record ledger.Record, path string) string {
	if record.Staged != nil && samePath(record.Staged.Path, path) {
		return record.Staged.Path
	}
	return path
}
