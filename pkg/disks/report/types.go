package report

import (
	"fmt"
	"regexp"

	"github.com/stowage-csi/stowage/pkg/disks/method"
)

// The modes of a volume, in Kubernetes' words.
const (
	Block      = "Block"
	Filesystem = "Filesystem"
)

// The states of a volume: NodeStorage's words.
const (
	Available = "Available"
	Offered   = "Offered"
	InUse     = "InUse"
	NotBlank  = "NotBlank"
	Dirty     = "Dirty"
	Unusable  = "Unusable"
)

// The states of a deletion: NodeStorage's words.
const (
	Requested  = "Requested"
	InProgress = "InProgress"
	Complete   = "Complete"
	Failed     = "Error"
)

// Most is the maximum number of volumes, offers and deletions, as in NodeStorage.
const Most = 256

// Volume is a disk, a partition or a mount point that was found.
type Volume struct {
	Name      string `json:"name"`
	Path      string `json:"path"`
	Device    string `json:"device"`
	Identity  string `json:"identity"`
	SizeBytes int64  `json:"sizeBytes"`
	Mode      string `json:"mode"`
	State     string `json:"state"`
	Message   string `json:"message,omitempty"`
}

// Deletion is the progress of a deletion.
type Deletion struct {
	ID       string `json:"id"`
	Volume   string `json:"volume"`
	State    string `json:"state"`
	Message  string `json:"message,omitempty"`
	Progress int    `json:"progress,omitempty"`
}

// State is everything that is reported.
type State struct {
	// Revision changes with every other change, and when the process restarts.
	Revision  string     `json:"revision"`
	Volumes   []Volume   `json:"volumes"`
	Deletions []Deletion `json:"deletions"`
	// Problem says why disks are not found; empty if they are.
	Problem string `json:"problem,omitempty"`
}

// Offer says that others may use a volume from now on. An offer of the same volume under another id is another use.
type Offer struct {
	ID     string `json:"id"`
	Volume string `json:"volume"`
}

// Deletable asks for a volume to be wiped.
type Deletable struct {
	ID     string        `json:"id"`
	Volume string        `json:"volume"`
	Method method.Method `json:"method"`
}

// Wanted is all offers and all wanted deletions.
type Wanted struct {
	Offers    []Offer     `json:"offers"`
	Deletions []Deletable `json:"deletions"`
	Source    Source      `json:"-"`
}

// Check refuses what cannot come from a NodeStorage.
func (w Wanted) Check() error {
	if len(w.Offers) > Most || len(w.Deletions) > Most {
		return fmt.Errorf("%d offers and %d deletions are wanted: at most %d of each are allowed", len(w.Offers),
			len(w.Deletions), Most)
	}
	ids, volumes := map[string]bool{}, map[string]bool{}
	for _, o := range w.Offers {
		if err := checkNames(o.ID, o.Volume); err != nil {
			return fmt.Errorf("an offer: %w", err)
		}
	}
	for _, d := range w.Deletions {
		if err := checkNames(d.ID, d.Volume); err != nil {
			return fmt.Errorf("a deletion: %w", err)
		}
		if err := d.Method.Check(); err != nil {
			return fmt.Errorf("the deletion %s of volume %s: %w", d.ID, d.Volume, err)
		}
		if ids[d.ID] || volumes[d.Volume] {
			return fmt.Errorf("the deletion %s of volume %s is wanted twice: each deletion has an id, and each volume one "+
				"deletion at a time", d.ID, d.Volume)
		}
		ids[d.ID], volumes[d.Volume] = true, true
	}
	return nil
}

// checkNames refuses invalid names, because they become file names. The id of an offer is the name of its
// PersistentVolume.
func checkNames(id, volume string) error {
	if !regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`).MatchString(id) {
		return fmt.Errorf("the id is %.300q: use at most 253 of a-z, 0-9, \".\" and \"-\", with a letter or digit at both "+
			"ends", id)
	}
	if !regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`).MatchString(volume) {
		return fmt.Errorf("the volume is %.300q: use at most 63 of a-z, 0-9 and \"-\", with a letter or digit at both ends",
			volume)
	}
	return nil
}
