package local

import (
	"crypto/rand"
	"iter"
	"os"
	"path/filepath"
)

// The folders of a pool, and the files in the folder of a volume or snapshot.
const (
	volumesFolder    = "volumes"
	snapshotsFolder  = "snapshots"
	groupsFolder     = "groups"
	stagingFolder    = "staging"
	trashFolder      = "trash"
	retainedFolder   = "retained"
	quarantineFolder = "quarantine"

	recordFile = "record.json"
)

func folders() []string {
	return []string{volumesFolder, snapshotsFolder, groupsFolder, stagingFolder, trashFolder, retainedFolder,
		quarantineFolder}
}

func (p *pool) folder(name string) string { return filepath.Join(p.path, name) }

func (p *pool) entry(folder, name string) string { return filepath.Join(p.path, folder, name) }

// entries returns the paths of all entries of a folder; none if the folder cannot be read. It reads the folder when the
// first path is requested, which never happens for pools that share blocks.
func (p *pool) entries(folder string) iter.Seq[string] {
	return func(yield func(string) bool) {
		found, err := os.ReadDir(p.folder(folder))
		if err != nil {
			return
		}
		for _, one := range found {
			if !yield(p.entry(folder, one.Name())) {
				return
			}
		}
	}
}

// unique returns a name that is unique.
func unique(handle string) string { return handle + "." + rand.Text() }
