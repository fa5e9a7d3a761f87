package orchestrator

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Leaks lists the leftovers of volumes, snapshots and their use when all of them are deleted: mounts, loop devices,
// files in the driver's data directory, and staging and target directories. It lists everything that the driver does
// not keep without volumes, which skeleton defines. A leaked directory represents all of its content.
//
// Other mount namespaces are not checked, but a mount in one of them shows as the loop device below it.
func Leaks(dataDir, mountDir string) ([]string, error) {
	dirs := []string{dataDir, mountDir}
	loops, loopErr := loopsOf(dirs)
	mounts, mountErr := mountsOf(dirs, loops)
	var leaks []string
	for _, m := range mounts {
		leaks = append(leaks, fmt.Sprintf("mount %s (%s from %s, root %s)", m.Mountpoint, m.FSType, m.Source, m.Root))
	}
	for _, l := range loops {
		leaks = append(leaks, fmt.Sprintf("loop device %s over %s", l.name, l.backing))
	}
	files, fileErr := unexpected(dataDir, skeleton())
	places, placeErr := unexpected(mountDir, []string{"staging/", "pods/"})
	return append(append(leaks, files...), places...), errors.Join(loopErr, mountErr, fileErr, placeErr)
}

// skeleton returns the content of the data directory that the driver with the local backend keeps without volumes:
// patterns of path.Match, with a trailing slash for directories.
func skeleton() []string {
	list := []string{
		"known/", "known/*", "held/", "held/*/", "held/*/path", "in-use/", "released/", "node/", "node/repairing/",
		"spare", "node/spare",
		"pools/", "pools/*/", "pools/*/pool.json",
	}
	for _, folder := range []string{"volumes", "snapshots", "groups", "staging", "trash", "retained", "quarantine"} {
		list = append(list, "pools/*/"+folder+"/")
	}
	return list
}

// unexpected lists the entries below dir that match none of the patterns. A directory represents all of its content.
func unexpected(dir string, patterns []string) ([]string, error) {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var found []string
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == dir {
			return err
		}
		relative, err := filepath.Rel(dir, name)
		if err != nil || expected(relative, entry, patterns) {
			return err
		}
		found = append(found, describe(name, entry))
		if entry.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
	return found, err
}

func expected(relative string, entry fs.DirEntry, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		plain, dir := strings.CutSuffix(pattern, "/")
		ok, _ := path.Match(plain, relative) // Only a malformed pattern fails, and these are fixed.
		return ok && entry.IsDir() == dir
	})
}

func describe(name string, entry fs.DirEntry) string {
	kind := "file"
	if entry.IsDir() {
		kind = "directory"
	}
	return kind + " " + name
}
