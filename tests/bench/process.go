package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// userHz is the unit of the times in /proc/PID/stat in ticks a second. It is part of the kernel's interface, and 100 on
// every supported architecture (proc(5), sysconf(3) _SC_CLK_TCK).
const userHz = 100

// cpuTime returns the CPU time of a process and of the children that it has waited for. It does not include kernel
// threads that work for the process, such as those of loop devices.
func cpuTime(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	return parseCPUTime(stat)
}

// parseCPUTime adds utime, stime, cutime and cstime: fields 14 to 17 (proc_pid_stat(5)). The second field is the
// program's name in parentheses, which may contain any characters; the third follows the last parenthesis.
func parseCPUTime(stat []byte) (time.Duration, error) {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 15 {
		return 0, fmt.Errorf("the process's stat file is %q: fields are missing", stat)
	}
	var ticks int64
	for _, field := range fields[11:15] {
		n, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / userHz, nil
}

// peakMemory returns a process's peak of resident memory in bytes since resetPeakMemory.
func peakMemory(pid int) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	return parsePeakMemory(string(status))
}

// parsePeakMemory reads VmHWM, which is in KiB (proc_pid_status(5)).
func parsePeakMemory(status string) (int64, error) {
	for line := range strings.Lines(status) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("the process's status file has no VmHWM: it has ended")
}

// resetPeakMemory resets the peak to the current value (proc_pid_clear_refs(5), 5).
func resetPeakMemory(pid int) error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0)
}
