package chaos

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"
)

// describer converts calls to text.
type describer struct {
	calls map[uint64]syscallInfo
	rules []rule
}

// rule replaces text that differs between runs.
type rule struct {
	what *regexp.Regexp
	with string
}

// newDescriber returns a describer for a world below a root.
func newDescriber(root string) describer {
	d := describer{calls: map[uint64]syscallInfo{}, rules: []rule{
		{regexp.MustCompile(regexp.QuoteMeta(root)), "~"},
		{regexp.MustCompile(`loop\d+`), "loop*"},
		{regexp.MustCompile(`"sequence":\d+`), `"sequence":*`},
		{regexp.MustCompile(`\b7:\d+`), "7:*"},
		{regexp.MustCompile(`/proc/(\d+|self)/fd/\d+`), "/proc/*/fd/*"},
		{regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), "<uuid>"}, // of the boot, or of a filesystem
		{regexp.MustCompile(`[0-9a-f]{64}`), "<volume>"},
		{regexp.MustCompile(`[0-9a-f]{32}-[0-9a-f]{8}`), "<volume>-<mounted>"}, // an intent, and the time of the last mount
		{regexp.MustCompile(`/proc/\d+`), "/proc/*"},
		{regexp.MustCompile(`, 0x25, 0x[0-9a-f]+$`), ", 0x25"}, // F_OFD_SETLK, and the address of its lock
	}}
	for _, info := range callTable() {
		d.calls[info.number] = info
	}
	return d
}

func (d describer) normalise(text string) string {
	for _, r := range d.rules {
		text = r.what.ReplaceAllString(text, r.with)
	}
	return text
}

// describe converts a call to text, and reports whether it is a point.
func (t *tracer) describe(tid int, task *task, r registers) (c call, counts bool) {
	info, known := t.describer.calls[r.number]
	if !known || r.number == unix.SYS_PRCTL {
		return c, false
	}
	c = call{name: info.name, group: task.group, write: info.flags&writes != 0, end: info.flags&onEnding != 0}
	if task.group != t.victim {
		c.command = t.commands[task.group]
	}
	if !countsAs(info, tid, c, r) {
		return c, false
	}
	c.args = t.describer.normalise(strings.Join(arguments(tid, info.args, r), ", "))
	return c, true
}

// countsAs reports whether this use of a call in the table is a point.
func countsAs(info syscallInfo, tid int, c call, r registers) bool {
	switch {
	case info.flags&onLock != 0 && r.args[1] != unix.F_SETLEASE && r.args[1] != unix.F_OFD_SETLK:
		return false
	case info.flags&onVfork != 0 && r.args[0]&unix.CLONE_VFORK == 0:
		return false
	case info.flags&onFile != 0 && !onRealFile(tid, r.args[0]):
		return false
	case c.command != "":
		return c.end || c.write || r.number == unix.SYS_EXECVE && c.command == starting
	}
	return !c.end
}

// starting is the name of a process that has not executed its program yet.
const starting = "child"

// onRealFile reports whether a descriptor refers to a real file, as opposed to a pipe, a socket or a polling object.
func onRealFile(tid int, fd uint64) bool {
	path := descriptor(tid, fd)
	switch {
	case strings.HasPrefix(path, "pipe:"), strings.HasPrefix(path, "socket:"), path == "":
		return false
	case strings.HasPrefix(path, "anon_inode:"):
		return strings.Contains(path, "fscontext")
	}
	return !strings.HasPrefix(path, "/dev/null") && !strings.HasSuffix(path, outputFile)
}

// descriptor returns the target of a thread's descriptor, as /proc shows it.
func descriptor(tid int, fd uint64) string {
	if int32(fd) == unix.AT_FDCWD {
		return ""
	}
	path, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", tid, int32(fd)))
	if err != nil {
		return ""
	}
	return path
}

// arguments converts the arguments of a call to text.
func arguments(tid int, kinds string, r registers) []string {
	var texts []string
	dir := ""
	for i, kind := range kinds {
		switch kind {
		case 'a':
			dir = descriptor(tid, r.args[i])
		case 'p':
			texts = append(texts, joined(dir, text(tid, r.args[i])))
			dir = ""
		case 'f':
			texts = append(texts, descriptor(tid, r.args[i]))
		case 's':
			texts = append(texts, fmt.Sprintf("%q", text(tid, r.args[i])))
		case 'n':
			texts = append(texts, fmt.Sprintf("%#x", uint32(r.args[i])))
		}
	}
	return texts
}

// joined returns a path with the directory that it is relative to.
func joined(dir, path string) string {
	if filepath.IsAbs(path) || dir == "" {
		return path
	}
	return strings.TrimSuffix(dir+"/"+path, "/")
}

// text reads a string from a thread's memory, process_vm_readv(2): at most one page, never across a page boundary.
func text(tid int, address uint64) string {
	const page = 4096
	if address == 0 {
		return ""
	}
	buf := make([]byte, page)
	var read []byte
	for len(read) < page {
		at := address + uint64(len(read))
		part := buf[:page-at%page]
		local := []unix.Iovec{{Base: &part[0]}}
		local[0].SetLen(len(part))
		n, err := unix.ProcessVMReadv(tid, local, []unix.RemoteIovec{{Base: uintptr(at), Len: len(part)}}, 0)
		if err != nil || n <= 0 {
			break
		}
		if end := bytes.IndexByte(part[:n], 0); end >= 0 {
			return string(append(read, part[:end]...))
		}
		read = append(read, part[:n]...)
	}
	return string(read)
}
