package disks

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stowage-csi/stowage/pkg/disks/method"
	"github.com/stowage-csi/stowage/pkg/disks/report"
	"github.com/stowage-csi/stowage/pkg/durable"
)

// volumeNote is what is remembered about a volume.
type volumeNote struct {
	Offer string        `json:"offer"` // the last one
	Dirty bool          `json:"dirty"` // it was not wiped since, or not as a whole
	Wiped method.Method `json:"wiped,omitempty"`
	// Left is what a wipe that changes nothing left (discovery.Contents). Notes of earlier versions lack it.
	Left string `json:"left,omitempty"`
	// Unproven says that no look has found the volume free since it was offered. Notes of earlier versions never say so.
	Unproven bool `json:"unproven,omitempty"`
	// DirtyBefore says that the volume was dirty when it was offered.
	DirtyBefore bool `json:"dirtyBefore,omitempty"`
	// Proven is the last earlier offer that was acknowledged. It is empty if a wipe has begun since.
	Proven string `json:"proven,omitempty"`
	// Cut says that a wipe has begun since the volume was offered. Only a complete one removes the note.
	Cut bool `json:"cut,omitempty"`
}

// operationNote is what is remembered about a deletion.
type operationNote struct {
	report.Deletable
	// Offer is the offer of the volume when the deletion began.
	Offer     string    `json:"offer,omitempty"`
	Position  int64     `json:"position,omitempty"` // of the wipe
	SizeBytes int64     `json:"sizeBytes,omitempty"`
	Complete  bool      `json:"complete,omitempty"`
	Noted     time.Time `json:"noted"`
}

// remembered is how many complete operations are remembered. None of them runs again.
const remembered = 4096

// notes are files in folders: one for each volume and each operation, and one for the agent.
type notes struct{ dir string }

const (
	volumesFolder    = "volumes"
	operationsFolder = "operations"
	suffix           = ".json"
)

func openNotes(dir string) (notes, error) {
	for _, folder := range []string{volumesFolder, operationsFolder} {
		if err := durable.MakeAll(filepath.Join(dir, folder), 0o700); err != nil {
			return notes{}, fmt.Errorf("make the folder of notes: %w", err)
		}
	}
	return notes{dir}, nil
}

func (n notes) write(folder, name string, note any) error {
	text, err := json.Marshal(note)
	if err != nil {
		return err
	}
	path := filepath.Join(n.dir, folder, name+suffix)
	if err := durable.Replace(path, path+".new", text); err != nil {
		return fmt.Errorf("note %s of %s: %w", name, folder, err)
	}
	return nil
}

// readAll reads the notes of a folder by their names. It ignores a file that a crash left incomplete.
func readAll[N any](n notes, folder string) (map[string]*N, error) {
	entries, err := os.ReadDir(filepath.Join(n.dir, folder))
	if err != nil {
		return nil, fmt.Errorf("read the notes: %w", err)
	}
	all := map[string]*N{}
	for _, entry := range entries {
		name, ok := strings.CutSuffix(entry.Name(), suffix)
		if !ok {
			continue
		}
		path := filepath.Join(n.dir, folder, entry.Name())
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read the notes: %w", err)
		}
		note := new(N)
		if err := json.Unmarshal(text, note); err != nil {
			return nil, fmt.Errorf("the note %s cannot be read: mend it, or remove it if the volume holds nothing of value: %w",
				path, err)
		}
		all[name] = note
	}
	return all, nil
}

// prune removes unwanted operations: all that are not complete, and the oldest of those that are.
func (n notes) prune(operations map[string]*operationNote, wanted func(id string) bool) error {
	var complete []*operationNote
	var errs []error
	drop := func(o *operationNote) {
		errs = append(errs, os.Remove(filepath.Join(n.dir, operationsFolder, o.ID+suffix)))
		delete(operations, o.ID)
	}
	for _, o := range operations {
		switch {
		case wanted(o.ID):
		case o.Complete:
			complete = append(complete, o)
		default:
			drop(o)
		}
	}
	slices.SortFunc(complete,
		func(a, b *operationNote) int { return cmp.Or(a.Noted.Compare(b.Noted), cmp.Compare(a.ID, b.ID)) })
	for _, o := range complete[:max(0, len(complete)-remembered)] {
		drop(o)
	}
	return errors.Join(errs...)
}
