package nfsdriver

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/moby/sys/mountinfo"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/tests/inprocess"
)

// allowing lets calls succeed, or fail because a server is missing.
func allowing(calls ...string) map[string][]codes.Code {
	want := map[string][]codes.Code{}
	for _, call := range calls {
		want[call] = []codes.Code{codes.OK, codes.Unavailable, codes.DeadlineExceeded}
	}
	return want
}

// tidy waits until a driver without volumes has no work left: no call hangs, both shares answer, and they contain only
// the driver's empty folders.
func (s *site) tidy(driver *inprocess.Driver) {
	s.Helper()
	s.soon("the end of the calls that were given up", func() (string, bool) {
		hung := gauge(s.T, driver, "stowage_node_calls_given_up")
		issues, err := driver.Instance.Node.(backends.Inspector).Inspect(s.Context())
		if err != nil {
			s.Fatal(err)
		}
		text := ""
		for _, issue := range issues {
			text += issue.Message + "; "
		}
		return text, hung == 0 && len(issues) == 0
	})
	for _, share := range []string{s.export.Path, s.other.Path} {
		s.soon("the removal of what was deleted from "+share, func() (string, bool) {
			found := leftovers(s.T, share)
			return strings.Join(found, " "), len(found) == 0
		})
	}
}

// leftovers returns the entries of a share that an empty share does not have.
func leftovers(t interface{ Fatal(args ...any) }, share string) (found []string) {
	err := filepath.WalkDir(share, func(path string, entry os.DirEntry, err error) error {
		name, _ := filepath.Rel(share, path)
		depth := strings.Count(name, "/")
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (name == "." || name == ".stowage" || depth == 1 && strings.HasPrefix(name, ".stowage/")):
		case name == ".stowage/key", name == ".stowage/share.json", strings.HasPrefix(name, ".stowage/controllers/"):
		default:
			found = append(found, name)
		}
		return nil
	})
	if err != nil && !os.IsNotExist(err) { // An entry may just be removed.
		t.Fatal(err)
	}
	return found
}

// nothingIsLeft waits until the process and the kernel are in the state from before the driver's start: no mount,
// attached or detached, and no goroutine.
func (s *site) nothingIsLeft(goroutines int) {
	s.Helper()
	s.nothingIsMounted()
	s.soon("the end of all goroutines", func() (string, bool) {
		all := make([]byte, 1<<20)
		return string(all[:runtime.Stack(all, true)]), runtime.NumGoroutine() <= goroutines
	})
}

// nothingIsMounted waits until the kernel has no NFS mount, attached or detached, and so no connection to a server.
func (s *site) nothingIsMounted() {
	s.Helper()
	s.soon("the end of all mounts of NFS", func() (string, bool) {
		attached, err := mountinfo.GetMounts(func(m *mountinfo.Info) (skip, stop bool) {
			return !strings.HasPrefix(m.FSType, "nfs") || m.FSType == "nfsd", false
		})
		s.must(err)
		// The kernel lists all NFS volumes here, including those of detached mounts.
		text, err := os.ReadFile("/proc/fs/nfsfs/volumes")
		s.must(err)
		_, rest, _ := strings.Cut(string(text), "\n")
		return rest, len(attached) == 0 && strings.TrimSpace(rest) == ""
	})
}

// soon waits until done returns true. On a timeout, the error contains the text of done.
func (s *site) soon(what string, done func() (string, bool)) {
	s.Helper()
	for begun := time.Now(); ; <-time.After(100 * time.Millisecond) {
		why, ok := done()
		if ok {
			return
		}
		if time.Since(begun) > patience {
			s.Errorf("%s: not after %v: %s", what, patience, why)
			return
		}
	}
}
