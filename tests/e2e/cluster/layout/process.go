package layout

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
)

// Process identifies a process. Its start time distinguishes it from a later process with the same ID.
type Process struct {
	PID     int
	Started uint64 // clock ticks after boot: field 22 of /proc/PID/stat, proc_pid_stat(5)
}

// processFile records process 1 of the cluster's namespaces.
const processFile = "process.json"

// RecordProcess records the process that holds the cluster.
func (l Layout) RecordProcess(pid int) error {
	started, err := startTime(pid)
	if err != nil {
		return err
	}
	text, err := json.Marshal(Process{PID: pid, Started: started})
	if err != nil {
		return err
	}
	return WriteFile(l.Path(processFile), text, 0o644)
}

// Running returns the process that holds the cluster, and whether it is running.
func (l Layout) Running() (Process, bool, error) {
	text, err := os.ReadFile(l.Path(processFile))
	if errors.Is(err, fs.ErrNotExist) {
		return Process{}, false, nil
	}
	if err != nil {
		return Process{}, false, err
	}
	var p Process
	if err := json.Unmarshal(text, &p); err != nil {
		return p, false, fmt.Errorf("%s: %w", l.Path(processFile), err)
	}
	started, err := startTime(p.PID)
	if errors.Is(err, fs.ErrNotExist) {
		return p, false, nil
	}
	return p, err == nil && started == p.Started, err
}

func startTime(pid int) (uint64, error) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, err
	}
	// The second field is the command in parentheses, and may contain any characters.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return 0, fmt.Errorf("/proc/%d/stat has %d fields after the command, not 20", pid, len(fields))
	}
	if state := fields[0][0]; state == 'Z' || state == 'X' {
		return 0, fmt.Errorf("process %d has ended: %w", pid, fs.ErrNotExist)
	}
	return strconv.ParseUint(string(fields[19]), 10, 64)
}
