package powerloss

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// kernelLog reads the kernel's log from a moment on.
type kernelLog struct {
	fd  int
	err error // the reason if it cannot be read
}

// listen starts to read the kernel's log at its end.
func listen() *kernelLog {
	fd, err := unix.Open("/dev/kmsg", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err == nil {
		_, err = unix.Seek(fd, 0, unix.SEEK_END)
	}
	return &kernelLog{fd: fd, err: err}
}

// about returns the new log lines about a loop device, each on its own line, or the reason why the log cannot be read.
func (k *kernelLog) about(l *loop) string {
	var text strings.Builder
	err, name := k.err, "("+filepath.Base(l.path)+")"
	for record := make([]byte, 8192); err == nil; {
		var n int
		if n, err = k.read(record); err == nil {
			_, line, _ := strings.Cut(string(record[:n]), ";")
			line, _, _ = strings.Cut(line, "\n") // Further lines contain device properties.
			if strings.Contains(line, name) {
				fmt.Fprintf(&text, "    kernel: %s\n", line)
			}
		}
	}
	if !errors.Is(err, unix.EAGAIN) {
		fmt.Fprintf(&text, "    the kernel's log cannot be read: %v\n", err)
	}
	return text.String()
}

// read reads one record. It skips records that were overwritten before they were read.
func (k *kernelLog) read(record []byte) (n int, err error) {
	for {
		if n, err = unix.Read(k.fd, record); !errors.Is(err, unix.EPIPE) {
			return n, err
		}
	}
}

func (k *kernelLog) close() {
	if k.fd >= 0 {
		_ = unix.Close(k.fd) // It was only read.
	}
}

// TestTheKernelIsHeard mounts an empty drive: the report of a refused mount must contain the kernel's reason.
func TestTheKernelIsHeard(t *testing.T) {
	demand(t)
	f := chosen()[0]
	blank := make(image, f.sizeMiB*mib/pageSize)
	l := newBenches(t, 1, len(blank))[0].replay(t.Context(), filesystem{name: "ext4"}, cut{}, blank, &belief{})
	if l.unmounted == nil || !strings.Contains(l.kernel, "EXT4-fs") {
		t.Errorf("the mount of an empty drive ended with %v, and the kernel is reported with %q", l.unmounted, l.kernel)
	}
}
