package stuck

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// The limits of a report.
const (
	mostThreads  = 60
	mostMessages = 40
)

// Report returns the threads that wait in the kernel and cannot be interrupted, and those of the NFS server, each with
// its stack in the kernel, and the last messages of the kernel. It explains calls that do not end, such as mount(2).
func Report() string {
	var text strings.Builder
	paths, _ := filepath.Glob("/proc/[0-9]*/task/[0-9]*") // The pattern is well formed.
	shown := 0
	for _, path := range paths {
		name, state := thread(path)
		if state != "D" && !slices.Contains([]string{"nfsd", "rpc.mountd", "nfsdcltrack"}, name) || shown == mostThreads {
			continue
		}
		shown++
		stack, _ := os.ReadFile(filepath.Join(path, "stack")) // The thread may have ended.
		fmt.Fprintf(&text, "%s %s %s\n%s", filepath.Base(path), name, state, stack)
	}
	messages := kernelLog()
	for _, line := range messages[max(0, len(messages)-mostMessages):] {
		fmt.Fprintln(&text, "kernel:", line)
	}
	return text.String()
}

// thread returns the name and the state of a thread, or nothing if it has ended.
func thread(path string) (name, state string) {
	text, _ := os.ReadFile(filepath.Join(path, "stat"))
	_, after, _ := strings.Cut(string(text), "(")
	end := strings.LastIndex(after, ") ")
	if end < 0 || len(after) < end+3 {
		return "", ""
	}
	return after[:end], after[end+2 : end+3]
}

// kernelLog returns the messages that the kernel still has, without their continuation lines.
func kernelLog() (messages []string) {
	log, err := unix.Open("/dev/kmsg", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return []string{err.Error()}
	}
	defer func() { _ = unix.Close(log) }()
	record := make([]byte, 8192) // The kernel's limit for one.
	for {
		n, err := unix.Read(log, record)
		switch {
		case err == unix.EPIPE: // Newer messages have overwritten the next one.
		case err != nil || n <= 0:
			return messages
		default:
			_, message, _ := strings.Cut(string(record[:n]), ";")
			first, _, _ := strings.Cut(message, "\n")
			messages = append(messages, first)
		}
	}
}
