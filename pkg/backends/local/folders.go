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

// entry is the path of an entry of a folder.
func (p *pool) entry(folder, name string) string { return filepath.Join(p.path, folder, name) }

// entries are the paths of all entries of a folder, none where it cannot be read. It is read when somebody asks for the
// first, which pools that share their blocks never do.
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

// unique makes a name that nothing else has.
func unique(handle string) string { return handle + "." + rand.Text() }
