package wire

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Mark is on the kernel's command line in the guest, and nowhere else: what must not run on anybody's machine
// looks for it.
const Mark = "stowage.vm=1"

// Share is the tag of the shared folder, and where the guest mounts it.
const (
	Share      = "share"
	SharePoint = "/share"
)

// Monitor is where the guest reaches QEMU's monitor, and SparePorts is how many disks can be plugged in: QEMU calls the
// ports spare0, spare1 and so on.
const (
	Monitor    = "10.0.2.100:4444"
	SparePorts = 4
)

// jobFile is the name of the job in the shared folder.
const jobFile = "job.json"

// Job is what the guest does before it powers off.
type Job struct {
	Programs []Program
}

// Program is one that the guest runs, after the one before it has ended.
type Program struct {
	Name string // what it is called in frames
	Path string // within the shared folder
	Dir  string // the working directory, within the shared folder
	Args []string
	Temp string // the folder for temporary files
	// Limit is after how long it is killed.
	Limit time.Duration
}

// Write puts the job into the shared folder.
func (j Job) Write(share string) error {
	text, err := json.Marshal(j)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(share, jobFile), text, 0o644)
}

// ReadJob reads the job from the shared folder.
func ReadJob(share string) (Job, error) {
	var j Job
	text, err := os.ReadFile(filepath.Join(share, jobFile))
	if err != nil {
		return j, err
	}
	if err := json.Unmarshal(text, &j); err != nil {
		return j, fmt.Errorf("%s: %w", jobFile, err)
	}
	return j, nil
}
