package adversary

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// unplaced has the driver die just after it published a volume, before its data was put in place, and start again over
// a record that it cannot read: no janitor may take the data for what a dead attempt left.
func (w *world) unplaced(f Fault) (func() error, error) {
	var r published
	err := w.again(Proper, func() (err error) {
		if r, err = w.published(f.On); err == nil {
			err = r.withdraw()
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
		// Both names of the record, or the one that was made a link of.
		return w.again(Proper, func() error {
			return errors.Join(os.WriteFile(r.token, r.data, 0o600), os.RemoveAll(r.record), os.Link(r.token, r.record))
		})
	}, err
}

// published is a volume on a share, as the driver keeps it there.
type published struct {
	record, place, draft, token string
	data                        []byte
}

// published is one of those on the first share.
func (w *world) published(n int) (p published, err error) {
	root := w.disks[0].dir
	records, err := filepath.Glob(filepath.Join(root, ".stowage/volumes/*.json"))
	if err != nil || len(records) == 0 {
		return p, errors.Join(err, errors.New("there is no volume"))
	}
	path := records[n%len(records)]
	var fields struct{ ID, Turn, SubDir string }
	if p.data, err = os.ReadFile(path); err == nil {
		err = json.Unmarshal(p.data, &fields)
	}
	if err != nil || fields.SubDir == "" || strings.Contains(fields.SubDir, "..") {
		return p, fmt.Errorf("%s is no record of a volume: %w", path, err)
	}
	p.record, p.place, p.draft = path, filepath.Join(root, fields.SubDir),
		filepath.Join(root, ".stowage/staging", fields.ID+"-"+fields.Turn)
	p.token = p.draft + ".json"
	return p, nil
}

// withdraw takes back what came after the volume was published.
func (p published) withdraw() error {
	return errors.Join(os.Rename(p.place, p.draft), os.Link(p.record, p.token))
}
