package holders

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// search is one search. It ignores what it cannot read: a process may have ended meanwhile.
type search struct {
	subject    Subject
	own        string             // this process's mount namespace
	namespaces map[string][]place // where the subject is mounted, by mount namespace
	found      Found
}

// place is a mount of the subject in a mount namespace.
type place struct {
	mount int // the mount's ID
	path  string
}

func (s *search) add(pid int, use string, isCopy bool) {
	command := "this driver"
	if pid != os.Getpid() {
		comm, _ := os.ReadFile(procDir(pid) + "/comm")
		command = strings.TrimSpace(string(comm))
	}
	s.found.Holders = append(s.found.Holders, Holder{PID: pid, Command: command, Use: use, IsCopy: isCopy})
}

func procDir(pid int) string { return "/proc/" + strconv.Itoa(pid) }

// ownNamespace looks through the mounts that this process sees for other mounts of the subject and mounts below it.
func (s *search) ownNamespace() {
	s.own, _ = os.Readlink("/proc/self/ns/mnt")
	mounts, err := mountsOf("/proc/self")
	if err != nil {
		return
	}
	places := s.places("/proc/self")
	s.namespaces[s.own] = places
	for _, m := range mounts {
		below := slices.ContainsFunc(places, func(p place) bool { return p.mount == m.Parent })
		switch {
		case s.subject.shows(m) && m.Mountpoint != s.subject.At:
			s.found.Holders = append(s.found.Holders, Holder{Use: "it is mounted at " + m.Mountpoint})
		case below && !s.subject.shows(m):
			s.found.Holders = append(s.found.Holders, Holder{Use: "there is a mount below it at " + m.Mountpoint})
		}
	}
}

// places returns the mounts of the subject that a process sees.
func (s *search) places(process string) []place {
	mounts, err := mountsOf(process)
	if err != nil {
		return nil
	}
	var places []place
	for _, m := range mounts {
		if s.subject.shows(m) {
			places = append(places, place{m.ID, m.Mountpoint})
		}
	}
	return places
}

// process inspects one process.
func (s *search) process(pid int) {
	dir := procDir(pid)
	namespace, err := os.Readlink(dir + "/ns/mnt")
	if err != nil {
		return
	}
	places, known := s.namespaces[namespace]
	if !known {
		places = s.places(dir)
		s.namespaces[namespace] = places
		if len(places) > 0 {
			s.add(pid, "has it mounted at "+places[0].path+" in another mount namespace", true)
		}
	}
	if use := s.use(dir, places); use != "" {
		s.add(pid, use, false)
	}
}

// use returns how a process uses the subject; an empty string if it does not.
func (s *search) use(dir string, places []place) string {
	if file := s.openFile(dir, places); file != "" {
		return "has " + file + " open"
	}
	if len(places) == 0 {
		return ""
	}
	if file, err := os.Readlink(dir + "/cwd"); err == nil && onPlace(file, places) {
		return "works in " + file
	}
	if file, err := os.Readlink(dir + "/root"); err == nil && onPlace(file, places) {
		return "has its root in " + file
	}
	if file := mapped(dir, places); file != "" {
		return "has " + file + " in memory"
	}
	return ""
}

// openFile returns the name of a file on the subject that a process has open.
func (s *search) openFile(dir string, places []place) string {
	files, err := os.ReadDir(dir + "/fd")
	if err != nil {
		return ""
	}
	for _, fd := range files {
		link := filepath.Join(dir, "fd", fd.Name())
		name, err := os.Readlink(link)
		if err != nil || !strings.HasPrefix(name, "/") {
			continue
		}
		if s.subject.isNode(link) || len(places) > 0 && onMount(filepath.Join(dir, "fdinfo", fd.Name()), places) {
			return name
		}
	}
	return ""
}

// onMount reports whether an open file is on one of the mounts.
func onMount(fdinfo string, places []place) bool {
	text, err := os.ReadFile(fdinfo)
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "mnt_id:"); ok {
			id, err := strconv.Atoi(strings.TrimSpace(value))
			return err == nil && slices.ContainsFunc(places, func(p place) bool { return p.mount == id })
		}
	}
	return false
}

func onPlace(file string, places []place) bool {
	return slices.ContainsFunc(places, func(p place) bool { return p.path != "/" && within(file, p.path) })
}

// mapped returns the name of a file on the places that a process has mapped (proc_pid_maps(5)).
func mapped(dir string, places []place) string {
	file, err := os.Open(dir + "/maps")
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }() // open for reading only
	const nameField = 6
	for lines := bufio.NewScanner(file); lines.Scan(); {
		fields := strings.SplitN(lines.Text(), " ", nameField)
		if len(fields) < nameField {
			continue
		}
		if name := strings.TrimSpace(fields[nameField-1]); strings.HasPrefix(name, "/") && onPlace(name, places) {
			return name
		}
	}
	return ""
}
