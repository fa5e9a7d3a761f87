package adversary

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// unplaced makes the driver die just after it published a volume, before its data was moved to its place, and start
// again over an unreadable record: no janitor may mistake the data for the remains of a dead attempt.
func (w *world) unplaced(f Fault) (func() error, error) {
	var r published
	err := w.again(Proper, func() (err error) {
		if r, err = w.published(f.On); err == nil {
			err = notNow(r.withdraw(), fs.ErrNotExist, fs.ErrExist) // it was at that step anyway
		}
		if err == nil && f.On%2 == 0 {
			return newer(r.record, r.data)
		} else if err == nil {
			return selfLink(r.record, nil)
		}
		return err
	})
	return func() error {
		if r.record == "" {
			return nil
		}
		// Both names of the record, or the one that was replaced by a link.
		return w.again(Proper, func() error {
			return errors.Join(os.WriteFile(r.token, r.data, 0o600), os.RemoveAll(r.record), os.Link(r.token, r.record))
		})
	}, err
}

// published describes a volume on a share by the driver's files.
type published struct {
	record, place, draft, token string
	data                        []byte
}

// published returns a volume of the first share.
func (w *world) published(n int) (p published, err error) {
	root := w.disks[0].dir
	records, err := filepath.Glob(filepath.Join(root, ".stowage/volumes/*.json"))
	if err != nil || len(records) == 0 {
		return p, errors.Join(err, errNotNow)
	}
	path := records[n%len(records)]
	var fields struct{ ID, Turn, SubDir string }
	if p.data, err = os.ReadFile(path); err == nil {
		err = json.Unmarshal(p.data, &fields)
	}
	if err != nil || strings.Contains(fields.SubDir, "..") {
		return p, fmt.Errorf("%s is no record of a volume: it has the directory %q (%w)", path, fields.SubDir, err)
	}
	if fields.SubDir == "" {
		return p, fmt.Errorf("%s names no directory: %w", path, errNotNow)
	}
	p.record, p.place, p.draft = path, filepath.Join(root, fields.SubDir),
		filepath.Join(root, ".stowage/staging", fields.ID+"-"+fields.Turn)
	p.token = p.draft + ".json"
	return p, nil
}

// withdraw undoes the steps after the volume's publication.
func (p published) withdraw() error {
	return errors.Join(os.Rename(p.place, p.draft), os.Link(p.record, p.token))
}
