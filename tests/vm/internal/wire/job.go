package wire

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Mark is on the kernel's command line only in the guest. Code that must not run on another machine checks for it.
const Mark = "stowage.vm=1"

// Share is the tag of the shared folder, and SharePoint is its mount point in the guest.
const (
	Share      = "share"
	SharePoint = "/share"
)

// Monitor is the guest's address of QEMU's monitor. SparePorts is the number of disks that can be plugged in; QEMU
// names the ports spare0, spare1 and so on.
const (
	Monitor    = "10.0.2.100:4444"
	SparePorts = 4
)

// jobFile is the name of the job in the shared folder.
const jobFile = "job.json"

// Job is the guest's work before it powers off.
type Job struct {
	Programs []Program
}

// Program is a program that the guest runs after the previous one has ended.
type Program struct {
	Name string // its name in frames
	Path string // within the shared folder
	Dir  string // the working directory, within the shared folder
	Args []string
	Temp string // the folder for temporary files
	// Limit is the time after which it is killed. Its own limit is shorter by Grace.
	Limit time.Duration
}

// Grace is the time that a test binary has after its own timeout, to print its goroutines.
const Grace = 30 * time.Second

// Write writes the job to the shared folder.
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
