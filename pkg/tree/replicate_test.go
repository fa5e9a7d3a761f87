package tree

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// replicate replicates into dst, which it creates if needed, with a directory for links beside it.
func replicate(ctx context.Context, t *testing.T, dst, src string, how Replication) error {
	t.Helper()
	for _, dir := range []string{dst, dst + ".links"} {
		must(t, os.MkdirAll(dir, 0o700))
	}
	to, err := os.Open(dst)
	must(t, err)
	defer to.Close()
	from, err := os.Open(src)
	must(t, err)
	defer from.Close()
	how.Links, err = os.Open(dst + ".links")
	must(t, err)
	defer how.Links.Close()
	return Replicate(ctx, to, from, how)
}

func TestReplicateKeepsEverything(t *testing.T) {
	for _, workers := range []int{1, 8} {
		src := richTree(t)
		want := describe(t, src)
		dst := filepath.Join(t.TempDir(), "copy")
		var progress Progress
		must(t, replicate(t.Context(), t, dst, src, Replication{Workers: workers, Lenient: true, Progress: &progress}))
		must(t, Remove(t.Context(), dst+".links"))
		if have := describe(t, dst); have != want {
			t.Errorf("with %d workers the copy is\n%s\nwant\n%s", workers, have, want)
		}
		if progress.Entries.Load() < 10 || progress.Bytes.Load() < 64<<20 {
			t.Errorf("%d entries and %d bytes were counted", progress.Entries.Load(), progress.Bytes.Load())
		}
	}
}

// A copy that is stopped anywhere returns an error.
func TestReplicateStops(t *testing.T) {
	src := richTree(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := replicate(ctx, t, filepath.Join(t.TempDir(), "copy"), src,
		Replication{Workers: 4}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was cancelled", err)
	}
}

// changes are the possible changes of a rich tree.
func changes() map[string]func(dir string) error {
	return map[string]func(dir string) error{
		"nothing":     func(string) error { return nil },
		"contents":    func(dir string) error { return os.WriteFile(filepath.Join(dir, "file"), []byte("others"), 0o600) },
		"a new file":  func(dir string) error { return os.WriteFile(filepath.Join(dir, "deep", "new"), nil, 0o600) },
		"a file less": func(dir string) error { return os.Remove(filepath.Join(dir, "deep", "one name")) },
		"a rename":    func(dir string) error { return os.Rename(filepath.Join(dir, "empty"), filepath.Join(dir, "full")) },
		"permissions": func(dir string) error { return os.Chmod(filepath.Join(dir, "deep", "er", "est"), 0o700) },
		"times put back": func(dir string) error {
			if err := os.WriteFile(filepath.Join(dir, "file"), []byte("contents"), 0o600); err != nil {
				return err
			}
			return os.Chtimes(filepath.Join(dir, "file"), time.Unix(1, 0), time.Unix(1, 0))
		},
	}
}

// Every kind of change after the instant is noticed.
func TestReplicateNoticesChanges(t *testing.T) {
	for name, change := range changes() {
		t.Run(name, func(t *testing.T) {
			src := richTree(t)
			<-time.After(20 * time.Millisecond) // longer than a step of any filesystem's clock
			mark := filepath.Join(filepath.Dir(src), "mark")
			must(t, os.WriteFile(mark, nil, 0o600))
			var stat unix.Stat_t
			must(t, unix.Stat(mark, &stat))
			must(t, change(src))
			err := replicate(t.Context(), t, filepath.Join(t.TempDir(), "copy"), src,
				Replication{Workers: 4, Since: Instant{stat.Ctim, time.Now()}})
			if want := name != "nothing"; errors.Is(err, ErrChanged) != want || err != nil && !want {
				t.Errorf("got %v, want that a change is noticed: %t", err, want)
			}
		})
	}
}

// A filesystem's clock was ten minutes ahead when a tree was written, and is right again. The tree can be copied at
// once, and further changes are noticed all the same, even if the clock is ahead once more.
func TestClockThatWasSetBack(t *testing.T) {
	for name, change := range changes() {
		t.Run(name, func(t *testing.T) {
			tree := richTree(t)
			src, err := os.Open(tree)
			must(t, err)
			defer src.Close()
			var stat unix.Stat_t
			must(t, unix.Stat(tree, &stat))
			stat.Ctim.Sec -= 600
			since := Instant{stat.Ctim, time.Now()}
			found, err := Look(t.Context(), src, since)
			must(t, err)
			<-time.After(20 * time.Millisecond) // longer than a step of any filesystem's clock
			must(t, change(tree))
			err = replicate(t.Context(), t, filepath.Join(t.TempDir(), "copy"), tree,
				Replication{Workers: 4, Since: since, Ahead: found.Ahead})
			if want := name != "nothing"; errors.Is(err, ErrChanged) != want || err != nil && !want {
				t.Errorf("got %v, want that a change is noticed: %t", err, want)
			}
		})
	}
}

// A pod's link that leads out of the tree is copied as a link. A directory that is replaced by one is not followed.
func TestReplicateStaysInside(t *testing.T) {
	dir := t.TempDir()
	for _, made := range []string{"src/sub", "secret", "dst"} {
		must(t, os.MkdirAll(filepath.Join(dir, made), 0o755))
	}
	must(t, os.WriteFile(filepath.Join(dir, "secret", "file"), []byte("secret"), 0o600))
	must(t, os.Symlink("../secret", filepath.Join(dir, "src", "link")))
	// The copy's place belongs to the driver, but an earlier run may have left there anything that the source had then.
	must(t, os.Symlink("../secret", filepath.Join(dir, "dst", "sub")))
	if err := replicate(t.Context(), t, filepath.Join(dir, "dst"), filepath.Join(dir, "src"),
		Replication{Workers: 1}); err == nil {
		t.Error("a directory was copied over a link")
	}
	must(t, os.Remove(filepath.Join(dir, "dst", "sub")))
	must(t, replicate(t.Context(), t, filepath.Join(dir, "dst"), filepath.Join(dir, "src"), Replication{Workers: 1}))
	if target, err := os.Readlink(filepath.Join(dir, "dst", "link")); err != nil || target != "../secret" {
		t.Errorf("the link is %q, %v", target, err)
	}
	if entries, err := os.ReadDir(filepath.Join(dir, "secret")); err != nil || len(entries) != 1 {
		t.Errorf("the secret directory has %v, %v", entries, err)
	}
}
