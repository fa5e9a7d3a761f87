package chaos

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/spare"
)

// observe describes everything that an operation can change, in one line each, without details that differ between two
// undisturbed runs.
func (w *world) observe() []string {
	d := newDescriber(w.root)
	var lines []string
	for _, look := range []func() []string{w.mounts, w.loops, w.state, w.pool, w.places, w.contents} {
		lines = append(lines, look()...)
	}
	for i, line := range lines {
		lines[i] = d.normalise(line)
	}
	return lines
}

// mountPoints lists the mounts below the root.
func (w *world) mountPoints() []*mountinfo.Info {
	infos, err := mountinfo.GetMounts(mountinfo.PrefixFilter(w.root))
	if err != nil {
		return []*mountinfo.Info{{Mountpoint: err.Error()}}
	}
	return slices.DeleteFunc(infos, func(i *mountinfo.Info) bool { return i.Mountpoint == w.root })
}

func (w *world) mounts() []string {
	var lines []string
	for _, m := range w.mountPoints() {
		mode, _, _ := strings.Cut(m.Options, ",")
		super, _, _ := strings.Cut(m.VFSOptions, ",")
		if m.FSType == "tmpfs" || m.FSType == "devtmpfs" {
			super = "" // the machine's own options
		}
		lines = append(lines, fmt.Sprintf("mount %s: %s %s of %s %s", m.Mountpoint, m.FSType, mode, m.Root, super))
	}
	return lines
}

// loops lists the loop devices over files below the root (sysfs-block).
func (w *world) loops() []string {
	var lines []string
	for _, dir := range w.loopDirs() {
		attribute := func(name string) string {
			value, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				return err.Error()
			}
			return strings.TrimSpace(string(value))
		}
		lines = append(lines, fmt.Sprintf("loop device of %s: read-only %s, autoclear %s, %s sectors",
			attribute("loop/backing_file"), attribute("ro"), attribute("loop/autoclear"), attribute("size")))
	}
	return lines
}

// loopDirs returns the sysfs directories of the world's loop devices.
func (w *world) loopDirs() []string {
	all, _ := filepath.Glob(virtualBlock + "/loop[0-9]*")
	return slices.DeleteFunc(all, func(dir string) bool {
		file, err := os.ReadFile(filepath.Join(dir, "loop/backing_file"))
		return err != nil || !strings.HasPrefix(string(file), w.root+"/")
	})
}

// state lists the files of the Service, with the content of records. A record for which the disk had no space is in the
// reserved file, and is listed as the file that it replaces.
func (w *world) state() []string {
	files := map[string]string{} // their content, by path
	kept := filepath.Join(w.path("state"), "spare")
	_ = filepath.WalkDir(w.path("state"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path == kept {
			return err
		}
		files[path] = ""
		if filepath.Dir(path) == w.path("state") && strings.HasSuffix(path, ".json") {
			data, _ := os.ReadFile(path) // An unreadable file is no record.
			files[path] = ": " + record(data)
		}
		return nil
	})
	for volume, note := range notes(kept) {
		files[filepath.Join(w.path("state"), fmt.Sprintf("%x.json", sha256.Sum256([]byte(volume))))] = ": " + record(note)
	}
	var lines []string
	for _, path := range slices.Sorted(maps.Keys(files)) {
		lines = append(lines, "state file "+path+files[path])
	}
	return lines
}

// notes returns the notes in the reserved file, if it exists.
func notes(path string) map[string][]byte {
	if _, err := os.Lstat(path); err != nil {
		return nil // Opening it would create it.
	}
	room, _ := spare.Open(path) // Without the file there are no notes.
	found, err := room.Notes()
	if err != nil {
		return map[string][]byte{path: []byte(err.Error())}
	}
	return found
}

// pool lists the files of the local backend, except those in a volume.
func (w *world) pool() []string {
	if !w.local {
		return nil
	}
	var lines []string
	err := filepath.WalkDir(w.path("pool"), func(path string, entry fs.DirEntry, err error) error {
		if err == nil {
			lines = append(lines, "pool file "+path)
		}
		if err == nil && entry.IsDir() && path == w.data() {
			return fs.SkipDir
		}
		return err
	})
	if err != nil {
		lines = append(lines, "pool "+err.Error())
	}
	return lines
}

// record returns the last line of a ledger file, without numbers.
func record(data []byte) string {
	lines := bytes.Split(bytes.TrimSuffix(data, []byte{'\n'}), []byte{'\n'})
	var found map[string]any
	if err := json.Unmarshal(lines[len(lines)-1], &found); err != nil {
		return fmt.Sprintf("%q: %v", lines[len(lines)-1], err)
	}
	delete(found, "boot")
	if staged, ok := found["staged"].(map[string]any); ok {
		delete(staged, "root")
		if source, ok := staged["source"].(map[string]any); ok {
			delete(source, "major")
			delete(source, "minor")
		}
	}
	text, err := json.Marshal(found)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// places lists the entries of the directories of mount points.
func (w *world) places() []string {
	lines := list(filepath.Dir(w.targetPath()))
	if !w.mounted(w.stagingPath()) {
		lines = append(lines, list(w.stagingPath())...)
	}
	return lines
}

func list(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return []string{"place " + err.Error()}
	}
	var lines []string
	for _, entry := range entries {
		lines = append(lines, fmt.Sprintf("place %s: %s", filepath.Join(dir, entry.Name()), entry.Type()))
	}
	return lines
}

func (w *world) mounted(path string) bool {
	return slices.ContainsFunc(w.mountPoints(), func(m *mountinfo.Info) bool { return m.Mountpoint == path })
}

// contents describes the readable data at the volume's mount points.
func (w *world) contents() []string {
	var lines []string
	for _, place := range []string{w.stagingPath(), w.stagingPath() + "/device", w.targetPath()} {
		if w.mounted(place) {
			lines = append(lines, "content of "+place+": "+w.contentAt(place))
		}
	}
	return lines
}

func (w *world) contentAt(place string) string {
	var stat unix.Statfs_t
	var err error
	switch {
	case w.form == raw:
		err = verifyRaw(place)
	case !w.blank:
		err = verify(place)
	}
	if err != nil {
		return err.Error()
	}
	if w.form != image {
		return "as written" + ownership(place)
	}
	if err := unix.Statfs(place, &stat); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("as written, %d blocks of %d bytes%s", stat.Blocks, stat.Bsize, ownership(place))
}

// ownership describes the owners of a volume's entries.
func ownership(place string) string {
	sum := sha256.New()
	var root unix.Stat_t
	if err := unix.Lstat(place, &root); err != nil {
		return ", " + err.Error()
	}
	err := filepath.WalkDir(place, func(path string, _ fs.DirEntry, err error) error {
		var stat unix.Stat_t
		if err == nil {
			err = unix.Lstat(path, &stat)
		}
		_, _ = fmt.Fprintln(sum, strings.TrimPrefix(path, place), stat.Mode, stat.Uid, stat.Gid) // a hash never fails
		return err
	})
	if err != nil {
		return ", " + err.Error()
	}
	return fmt.Sprintf(", group %d, mode %o, ownership %x", root.Gid, root.Mode, sum.Sum(nil)[:4])
}

// difference returns the differences between two observations, or an empty string.
func difference(want, got []string) string {
	var b strings.Builder
	for _, line := range want {
		if !slices.Contains(got, line) {
			fmt.Fprintf(&b, "\n        missing: %s", line)
		}
	}
	seen := map[string]int{}
	for _, line := range got {
		seen[line]++
		if count(want, line) < seen[line] {
			fmt.Fprintf(&b, "\n        too much: %s", line)
		}
	}
	return b.String()
}

func count(lines []string, line string) int {
	n := 0
	for _, l := range lines {
		if l == line {
			n++
		}
	}
	return n
}
