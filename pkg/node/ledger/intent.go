package ledger

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// intentDir is where intents are kept, below the ledger's directory.
const intentDir = "formatting"

// Intent says that a blank device was about to be formatted. While it stands, nobody has mounted what
// the formatting made, so that it may be thrown away and made again.
type Intent struct {
	Volume   string `json:"volume"`
	FSType   string `json:"fsType"`
	Identity string `json:"identity"`        // tells the device from all others, also after a restart
	Image    string `json:"image,omitempty"` // the path of the image file that the device stands for
}

// Intents keeps intents, one a volume. Unlike records they are synced to disk both when they are
// written and when they are removed: half a filesystem outlives a loss of power, and an intent that came
// back after it was removed would have data formatted.
type Intents struct {
	dir      string
	unsynced atomic.Bool // a removal may not have reached the disk
}

// OpenIntents makes the directory and drops the intents whose image file is gone.
func OpenIntents(ledgerDir string) (*Intents, error) {
	i := &Intents{dir: filepath.Join(ledgerDir, intentDir)}
	if err := os.MkdirAll(i.dir, 0o700); err != nil {
		return nil, backends.Errorf(backends.Unavailable, "cannot make the directory for intents to format: %w", err)
	}
	files, err := list(i.dir)
	if err != nil {
		return nil, backends.Errorf(backends.Unavailable, "cannot read the intents to format: %w", err)
	}
	for _, path := range files {
		if err := i.clear(path); err != nil {
			return nil, backends.Errorf(backends.Unavailable, "cannot clear the intents to format up: %w", err)
		}
	}
	return i, syncDirectory(i.dir)
}

// clear removes a temporary file, and an intent for an image that is gone. What cannot be read stays: it
// matches no device, and allows nothing.
func (i *Intents) clear(path string) error {
	if filepath.Ext(path) == tempEnding {
		return os.Remove(path)
	}
	intent, _ := readIntent(path)
	if intent.Image == "" {
		return nil
	}
	if _, err := os.Lstat(intent.Image); errors.Is(err, fs.ErrNotExist) {
		return os.Remove(path)
	}
	return nil
}

func (i *Intents) path(volume string) string { return filepath.Join(i.dir, stem(volume)+recordEnding) }

// Stands tells whether exactly this intent was recorded and not removed. One that cannot be read does
// not stand: then nothing may be formatted that is not blank.
func (i *Intents) Stands(intent Intent) bool {
	found, err := readIntent(i.path(intent.Volume))
	return err == nil && found == intent
}

// Record writes the intent down and returns once it would survive a loss of power. Kinds: Unavailable.
func (i *Intents) Record(intent Intent) error {
	if err := i.write(intent); err != nil {
		return backends.Errorf(backends.Unavailable, "cannot record that volume %q is about to be formatted: %w", intent.Volume, err)
	}
	return nil
}

func (i *Intents) write(intent Intent) error {
	data, err := json.Marshal(intent)
	if err != nil {
		return err
	}
	path := i.path(intent.Volume)
	temp, err := os.OpenFile(path+tempEnding, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = temp.Write(data)
	if err := errors.Join(err, temp.Sync(), temp.Close()); err != nil {
		return errors.Join(err, removeIfThere(path+tempEnding))
	}
	if err := os.Rename(path+tempEnding, path); err != nil {
		return err
	}
	return syncDirectory(i.dir)
}

// Remove takes the intent of a volume away for good: once it returns, a loss of power does not bring it
// back. Kinds: Unavailable; the caller must not mount the volume then.
func (i *Intents) Remove(volume string) error {
	err := os.Remove(i.path(volume))
	if errors.Is(err, fs.ErrNotExist) && !i.unsynced.Load() {
		return nil
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		i.unsynced.Store(true)
		err = syncDirectory(i.dir)
	}
	if err != nil {
		return backends.Errorf(backends.Unavailable, "cannot remove the record that volume %q is being formatted: %w", volume, err)
	}
	i.unsynced.Store(false)
	return nil
}

func readIntent(path string) (Intent, error) {
	var intent Intent
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &intent)
	}
	return intent, err
}

// syncDirectory makes the names in a directory durable (fsync(2)).
func syncDirectory(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
