package tree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/tests/testfs"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// richTree creates a tree with one entry of each kind.
func richTree(t *testing.T) string {
	t.Helper()
	testfs.NeedRoot(t)
	dir := filepath.Join(t.TempDir(), "source")
	at := func(name string) string { return filepath.Join(dir, name) }
	must(t, os.MkdirAll(at("deep/er/est"), 0o755))
	must(t, os.WriteFile(at("file"), []byte("contents"), 0o640))
	must(t, os.WriteFile(at("empty"), nil, 0o600))
	must(t, os.WriteFile(at("deep/one name"), []byte("of two"), 0o600))
	must(t, os.Link(at("deep/one name"), at("deep/er/another name")))
	must(t, os.Link(at("deep/one name"), at("third name")))
	must(t, os.Symlink("/etc/passwd", at("absolute link")))
	must(t, os.Symlink("../../file", at("deep/er/relative link")))
	must(t, os.Symlink("missing", at("dangling link")))
	must(t, unix.Mkfifo(at("fifo"), 0o622))
	must(t, unix.Mknod(at("null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
	socket, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	must(t, err)
	t.Cleanup(func() { _ = unix.Close(socket) }) // Only its file matters.
	must(t, unix.Mknod(at("socket"), unix.S_IFSOCK|0o666, 0))
	must(t, os.WriteFile(at("holes"), []byte("x"), 0o600))
	must(t, os.Truncate(at("holes"), 64<<20))
	must(t, os.WriteFile(at("\xff not \n utf-8"), []byte("odd"), 0o600))
	must(t, os.Chown(at("file"), 1234, 5678))
	must(t, os.Lchown(at("dangling link"), 12, 34))
	must(t, unix.Chmod(at("empty"), 0o6755)) // Set-user-ID and set-group-ID.
	must(t, unix.Chmod(at("deep/er"), 0o3770))
	must(t, unix.Setxattr(at("file"), "user.note", []byte("of a user"), 0))
	must(t, unix.Setxattr(at("deep"), "trusted.owner", []byte("1000"), 0))
	must(t, unix.Lsetxattr(at("dangling link"), "trusted.link", []byte("on the link"), 0))
	must(t, unix.Setxattr(at("deep"), "system.posix_acl_default", acl(101), 0))
	must(t, unix.Setxattr(at("deep/one name"), "system.posix_acl_access", acl(102), 0))
	old := time.Date(2001, 2, 3, 4, 5, 6, 789, time.UTC)
	for _, name := range []string{"file", "fifo", "deep/er", "deep", ""} {
		must(t, os.Chtimes(at(name), old, old.Add(time.Hour)))
	}
	link := []unix.Timespec{unix.NsecToTimespec(old.UnixNano()), unix.NsecToTimespec(old.UnixNano())}
	must(t, unix.UtimesNanoAt(unix.AT_FDCWD, at("dangling link"), link, unix.AT_SYMLINK_NOFOLLOW))
	return dir
}

// acl is an access control list in the kernel's form (linux/posix_acl_xattr.h) with one more user than usual.
func acl(user byte) []byte {
	none := []byte{0xff, 0xff, 0xff, 0xff}
	list := []byte{2, 0, 0, 0}
	for _, e := range []struct {
		tag, perm byte
		id        []byte
	}{{1, 6, none}, {2, 4, []byte{user, 0, 0, 0}}, {4, 0, none}, {0x10, 4, none}, {0x20, 0, none}} {
		list = append(list, e.tag, 0, e.perm, 0)
		list = append(list, e.id...)
	}
	return list
}

// describe lists everything that a copy must keep.
func describe(t *testing.T, root string) string {
	t.Helper()
	var b bytes.Buffer
	inodes := map[uint64]int{}
	must(t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		must(t, err)
		name, err := filepath.Rel(root, path)
		must(t, err)
		var stat unix.Stat_t
		must(t, unix.Lstat(path, &stat))
		if stat.Mode&unix.S_IFMT == unix.S_IFSOCK {
			return nil
		}
		fmt.Fprintf(&b, "%q mode %o owner %d:%d dev %x mtime %v", name, stat.Mode, stat.Uid, stat.Gid, stat.Rdev, stat.Mtim)
		switch stat.Mode & unix.S_IFMT {
		case unix.S_IFREG:
			data, err := os.ReadFile(path)
			must(t, err)
			fmt.Fprintf(&b, " size %d data %q", stat.Size, bytes.TrimRight(data, "\x00"))
		case unix.S_IFLNK:
			target, err := os.Readlink(path)
			must(t, err)
			fmt.Fprintf(&b, " to %q", target)
		}
		if stat.Nlink > 1 && stat.Mode&unix.S_IFMT != unix.S_IFDIR {
			if inodes[stat.Ino] == 0 {
				inodes[stat.Ino] = len(inodes) + 1
			}
			fmt.Fprintf(&b, " names %d of file %d", stat.Nlink, inodes[stat.Ino])
		}
		fmt.Fprintf(&b, " xattrs %s\n", xattrs(t, path))
		return nil
	}))
	return b.String()
}

func xattrs(t *testing.T, path string) string {
	t.Helper()
	list := make([]byte, 64<<10)
	n, err := unix.Llistxattr(path, list)
	must(t, err)
	var all []string
	for name := range strings.SplitSeq(strings.Trim(string(list[:n]), "\x00"), "\x00") {
		if name == "" || strings.HasPrefix(name, "trusted.SGI_ACL_") { // This is how xfs shows a list a second time.
			continue
		}
		value := make([]byte, 64<<10)
		n, err := unix.Lgetxattr(path, name, value)
		must(t, err)
		all = append(all, fmt.Sprintf("%s=%x", name, value[:n]))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func TestCopyKeepsEverything(t *testing.T) {
	src := richTree(t)
	want := describe(t, src)
	for _, name := range []string{"fifo", "absolute link", "names 3 of file 1", "user.note", "trusted.link",
		"posix_acl_default", "posix_acl_access"} {
		if !strings.Contains(want, name) {
			t.Fatalf("the source lacks %q, so that nothing is tested:\n%s", name, want)
		}
	}
	dst := filepath.Join(t.TempDir(), "copy")
	must(t, Copy(t.Context(), dst, src))
	if have := describe(t, dst); have != want {
		t.Errorf("the copy is\n%s\nwant\n%s", have, want)
	}
	if _, err := os.Lstat(filepath.Join(dst, "socket")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket was copied: %v", err)
	}
	if have := describe(t, src); have != want {
		t.Errorf("the source has become\n%s\nwas\n%s", have, want)
	}
	var stat unix.Stat_t
	must(t, unix.Stat(filepath.Join(dst, "holes"), &stat))
	if stat.Blocks*512 > 1<<20 {
		t.Errorf("a file with holes takes %d bytes: they were filled", stat.Blocks*512)
	}
	entries, err := os.ReadDir(filepath.Dir(dst))
	must(t, err)
	if len(entries) != 1 {
		t.Errorf("beside the copy there is %v", entries)
	}
}

func TestCopyOnOtherFilesystems(t *testing.T) {
	for fsType, size := range map[string]int64{"xfs": 512, "btrfs": 256} {
		t.Run(fsType, func(t *testing.T) {
			src := richTree(t)
			dst := filepath.Join(testfs.New(t, fsType, size), "copy")
			must(t, Copy(t.Context(), dst, src))
			if have, want := describe(t, dst), describe(t, src); have != want {
				t.Errorf("the copy is\n%s\nwant\n%s", have, want)
			}
			again := dst + " of the copy" // On one filesystem, so that blocks are shared.
			must(t, Copy(t.Context(), again, dst))
			if have, want := describe(t, again), describe(t, dst); have != want {
				t.Errorf("the copy's copy is\n%s\nwant\n%s", have, want)
			}
		})
	}
}

func TestCopyNeverReplaces(t *testing.T) {
	src, dst := t.TempDir(), t.TempDir()
	must(t, os.WriteFile(filepath.Join(dst, "kept"), nil, 0o600))
	if err := Copy(t.Context(), dst, src); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a copy over what is there: got %v, want %v", err, fs.ErrExist)
	}
	if _, err := os.Lstat(filepath.Join(dst, "kept")); err != nil {
		t.Error(err)
	}
}

func TestCopyRefusesMounts(t *testing.T) {
	secret, src := t.TempDir(), t.TempDir()
	must(t, os.WriteFile(filepath.Join(secret, "secret"), nil, 0o600))
	for _, kind := range []string{"directory", "file"} {
		t.Run(kind, func(t *testing.T) {
			inside := filepath.Join(src, kind)
			if kind == "directory" {
				must(t, os.Mkdir(inside, 0o700))
				testfs.Bind(t, secret, inside)
			} else {
				must(t, os.WriteFile(inside, nil, 0o600))
				testfs.Bind(t, filepath.Join(secret, "secret"), inside)
			}
			dst := filepath.Join(t.TempDir(), "copy")
			if err := Copy(t.Context(), dst, src); !errors.Is(err, ErrMount) {
				t.Errorf("a copy with a mount inside: got %v, want %v", err, ErrMount)
			}
			if _, err := os.Lstat(filepath.Join(dst, "directory", "secret")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("what is mounted inside was copied: %v", err)
			}
		})
	}
}

func TestCopyOfWhatIsMissingOrNoDirectory(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Symlink("/etc", filepath.Join(dir, "link")))
	for _, name := range []string{"missing", "link", "missing/below"} {
		if err := Copy(t.Context(), filepath.Join(dir, "copy of "+filepath.Base(name)),
			filepath.Join(dir, name)); err == nil {
			t.Errorf("a copy of %q succeeded", name)
		}
	}
	if err := Copy(t.Context(), filepath.Join(dir, "missing", "copy"), dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a copy into a missing directory: got %v, want %v", err, fs.ErrNotExist)
	}
}

func TestCopyStopsWithItsContext(t *testing.T) {
	src := richTree(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Copy(ctx, filepath.Join(t.TempDir(), "copy"), src); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

// deepTree creates nested directories and returns the top.
func deepTree(t *testing.T, levels int) string {
	t.Helper()
	top := filepath.Join(t.TempDir(), "top")
	must(t, os.Mkdir(top, 0o700))
	t.Cleanup(func() { _ = Remove(context.Background(), top) }) // os.RemoveAll works, too, but slowly.
	dir, err := os.Open(top)
	must(t, err)
	for range levels {
		must(t, unix.Mkdirat(int(dir.Fd()), "d", 0o700))
		below, err := openDir(dir, "d")
		must(t, err)
		dir.Close()
		dir = below
	}
	fd, err := openNew(dir, "at the bottom")
	must(t, err)
	must(t, unix.Close(fd))
	dir.Close()
	return top
}

func TestCopyDeepTrees(t *testing.T) {
	dst := filepath.Join(t.TempDir(), "copy")
	must(t, Copy(t.Context(), dst, deepTree(t, maxDepth-1)))
	must(t, Remove(t.Context(), dst))
	err := Copy(t.Context(), filepath.Join(t.TempDir(), "copy"), deepTree(t, maxDepth+1))
	if !errors.Is(err, ErrTooDeep) {
		t.Errorf("a copy of a tree that is too deep: got %v, want %v", err, ErrTooDeep)
	}
}

// TestCopyWhileLinksAreSwapped copies while another goroutine keeps exchanging a directory and a file for links that
// lead out, as a hostile pod would. Nothing from outside must be copied.
func TestCopyWhileLinksAreSwapped(t *testing.T) {
	outside := t.TempDir()
	const secret = "must not be copied"
	must(t, os.WriteFile(filepath.Join(outside, "file"), []byte(secret), 0o600))
	src := filepath.Join(t.TempDir(), "source")
	must(t, os.MkdirAll(filepath.Join(src, "dir"), 0o700))
	must(t, os.WriteFile(filepath.Join(src, "dir", "file"), []byte("inside"), 0o600))
	must(t, os.WriteFile(filepath.Join(src, "plain"), []byte("inside"), 0o600))
	must(t, os.Symlink(outside, filepath.Join(src, "link")))
	must(t, os.Symlink(filepath.Join(outside, "file"), filepath.Join(src, "plain link")))
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			default:
				for _, pair := range [][2]string{{"dir", "link"}, {"plain", "plain link"}} {
					_ = unix.Renameat2(unix.AT_FDCWD, filepath.Join(src, pair[0]), unix.AT_FDCWD, filepath.Join(src, pair[1]),
						unix.RENAME_EXCHANGE)
				}
			}
		}
	}()
	copies := t.TempDir()
	for i := range 200 {
		dst := filepath.Join(copies, fmt.Sprint(i))
		if err := Copy(t.Context(), dst, src); err != nil {
			t.Errorf("copy %d: %v", i, err)
		}
		must(t, filepath.WalkDir(dst, func(path string, entry fs.DirEntry, err error) error {
			must(t, err)
			if entry.Type().IsRegular() {
				if data, err := os.ReadFile(path); err != nil || string(data) == secret {
					t.Errorf("%s has %q, %v", path, data, err)
				}
			}
			return nil
		}))
	}
	close(done)
	<-ended
}
