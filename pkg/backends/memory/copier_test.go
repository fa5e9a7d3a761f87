package memory

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func statOf(t *testing.T, path string) (fs.FileInfo, *syscall.Stat_t) {
	t.Helper()
	info, err := os.Lstat(path)
	must(t, err)
	return info, info.Sys().(*syscall.Stat_t)
}

func TestCopyTreeKeepsWhatFilesAre(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	then := time.Date(2001, 2, 3, 4, 5, 6, 7000, time.UTC)
	must(t, os.MkdirAll(filepath.Join(from, "deep/er"), 0o755))
	must(t, os.WriteFile(filepath.Join(from, "deep/er/file"), []byte("text"), 0o600))
	must(t, os.WriteFile(filepath.Join(from, "\xff\xfe not UTF-8"), []byte("odd"), 0o600))
	must(t, os.WriteFile(filepath.Join(from, "program"), []byte("#!"), 0o755))
	must(t, os.Symlink("../../outside", filepath.Join(from, "link")))
	must(t, os.Lchown(filepath.Join(from, "link"), 11, 12))
	must(t, os.Chown(filepath.Join(from, "program"), 13, 14))
	must(t, os.Chmod(filepath.Join(from, "program"), 0o751|fs.ModeSetuid|fs.ModeSetgid))
	must(t, os.Chmod(filepath.Join(from, "deep"), 0o710|fs.ModeSetgid|fs.ModeSticky))
	must(t, os.Chtimes(filepath.Join(from, "deep"), then, then))
	must(t, os.Chtimes(filepath.Join(from, "program"), then, then))

	must(t, copyTree(t.Context(), to, from))

	for _, name := range []string{"deep", "deep/er", "deep/er/file", "program", "link", "\xff\xfe not UTF-8"} {
		want, wantStat := statOf(t, filepath.Join(from, name))
		have, haveStat := statOf(t, filepath.Join(to, name))
		if have.Mode() != want.Mode() || haveStat.Uid != wantStat.Uid || haveStat.Gid != wantStat.Gid {
			t.Errorf("%q is %v of %d:%d, want %v of %d:%d", name, have.Mode(), haveStat.Uid, haveStat.Gid, want.Mode(),
				wantStat.Uid, wantStat.Gid)
		}
		if name != "link" && !have.ModTime().Equal(want.ModTime()) {
			t.Errorf("%q is of %v, want %v", name, have.ModTime(), want.ModTime())
		}
	}
	if text, err := os.ReadFile(filepath.Join(to, "deep/er/file")); string(text) != "text" || err != nil {
		t.Errorf("the file has %q, %v", text, err)
	}
	if link, err := os.Readlink(filepath.Join(to, "link")); link != "../../outside" || err != nil {
		t.Errorf("the link leads to %q, %v", link, err)
	}
}

func TestCopyTreeLeavesOutWhatHoldsNoData(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	must(t, unix.Mkfifo(filepath.Join(from, "pipe"), 0o600))
	must(t, unix.Mknod(filepath.Join(from, "socket"), unix.S_IFSOCK|0o600, 0))
	must(t, os.WriteFile(filepath.Join(from, "file"), nil, 0o600))
	must(t, copyTree(t.Context(), to, from))
	entries, err := os.ReadDir(to)
	if len(entries) != 1 || err != nil {
		t.Errorf("copied %v, %v; want the file only", entries, err)
	}
}

// TestCopyKeepsHoles compares blocks, and reads the areas around the data.
func TestCopyKeepsHoles(t *testing.T) {
	const size = 64 << 20
	from, to := t.TempDir(), t.TempDir()
	file, err := os.Create(filepath.Join(from, "image"))
	must(t, err)
	must(t, file.Truncate(size))
	for _, at := range []int64{0, 5 << 20, size/2 + 1, size - 4} {
		_, err := file.WriteAt([]byte("data"), at)
		must(t, err)
	}
	must(t, file.Close())

	must(t, copyTree(t.Context(), to, from))

	info, stat := statOf(t, filepath.Join(to, "image"))
	if info.Size() != size || stat.Blocks*512 > 1<<20 {
		t.Errorf("the copy has %d bytes, of which %d are allocated", info.Size(), stat.Blocks*512)
	}
	have, err := os.ReadFile(filepath.Join(to, "image"))
	must(t, err)
	want, err := os.ReadFile(filepath.Join(from, "image"))
	must(t, err)
	if string(have) != string(want) {
		t.Error("the copy has other bytes than the original")
	}
}

func TestCopyTreeEndsWithItsRequest(t *testing.T) {
	from := t.TempDir()
	must(t, os.WriteFile(filepath.Join(from, "file"), []byte("text"), 0o600))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := copyTree(ctx, t.TempDir(), from); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the end of the request", err)
	}
	for name, dirs := range map[string][2]string{
		"no source": {t.TempDir(), filepath.Join(from, "missing")}, "no target": {filepath.Join(from, "missing"), from},
	} {
		if err := copyTree(t.Context(), dirs[0], dirs[1]); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: got %v, want that it does not exist", name, err)
		}
	}
}

// TestCopyTreeIsNotLedOut copies a volume whose owner replaces a directory by a link to one of the host, a file by a
// link to a file of the host, and back, as fast as possible.
func TestCopyTreeIsNotLedOut(t *testing.T) {
	host, from := t.TempDir(), t.TempDir()
	must(t, os.WriteFile(filepath.Join(host, "file"), []byte("secret of the host"), 0o600))
	must(t, os.Mkdir(filepath.Join(from, "dir"), 0o700))
	must(t, os.WriteFile(filepath.Join(from, "dir", "file"), []byte("own"), 0o600))
	must(t, os.WriteFile(filepath.Join(from, "plain"), []byte("own"), 0o600))
	must(t, os.Symlink(host, filepath.Join(from, "to-dir")))
	must(t, os.Symlink(filepath.Join(host, "file"), filepath.Join(from, "to-file")))

	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			for _, pair := range [][2]string{{"dir", "to-dir"}, {"plain", "to-file"}} {
				err := unix.Renameat2(unix.AT_FDCWD, filepath.Join(from, pair[0]), unix.AT_FDCWD, filepath.Join(from, pair[1]),
					unix.RENAME_EXCHANGE)
				if err != nil {
					t.Errorf("swapping: %v", err)
					return
				}
			}
		}
	}()
	copies, begun := 0, time.Now()
	for i := 0; i < 300 || copies == 0 && time.Since(begun) < 2*time.Minute; i++ {
		to := t.TempDir()
		if copyTree(t.Context(), to, from) == nil {
			copies++
		}
		must(t, filepath.WalkDir(to, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			text, err := os.ReadFile(path)
			if strings.Contains(string(text), "secret") {
				t.Errorf("%s has what is outside of the volume", path)
			}
			return err
		}))
	}
	close(stop)
	<-stopped
	if copies == 0 {
		t.Error("not one copy succeeded: this test saw nothing")
	}
}
