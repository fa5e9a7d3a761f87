package outcome

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// Machine describes what may disturb a test at the moment: load, pressure, room, loop devices and mounts.
func Machine() string {
	var parts []string
	for _, path := range []string{"/proc/loadavg", "/proc/pressure/cpu", "/proc/pressure/io", "/proc/pressure/memory"} {
		if text, err := os.ReadFile(path); err == nil {
			first, _, _ := strings.Cut(string(text), "\n")
			parts = append(parts, strings.TrimPrefix(path, "/proc/")+" "+first)
		}
	}
	for _, dir := range []string{"/var/tmp", os.TempDir()} { // Tests put their files into both.
		var fs syscall.Statfs_t
		if syscall.Statfs(dir, &fs) == nil {
			// a block size is positive
			parts = append(parts, fmt.Sprintf("%d MiB free in %s", fs.Bavail*uint64(fs.Bsize)>>20, dir))
		}
	}
	loops := 0
	if devices, err := os.ReadDir("/sys/block"); err == nil {
		for _, d := range devices {
			if _, err := os.Stat("/sys/block/" + d.Name() + "/loop/backing_file"); err == nil {
				loops++
			}
		}
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo") // Without it there are none to report.
	parts = append(parts, fmt.Sprintf("%d loop devices in use, %d mounts", loops, strings.Count(string(mounts), "\n")))
	return strings.Join(parts, "; ")
}
