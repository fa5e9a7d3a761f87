package safepath

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/failure"
)

func wantKind(t *testing.T, err error, kind failure.Kind) {
	t.Helper()
	if !failure.Is(err, kind) {
		t.Errorf("got error %v (%s), want one of kind %s", err, failure.KindOf(err), kind)
	}
}

func TestName(t *testing.T) {
	for _, good := range []string{"a", ".a", "..a", "a..", "...", "pvc-1 2", "ä", strings.Repeat("n", 255), "-", "\n"} {
		if err := Name(good); err != nil {
			t.Errorf("Name(%q) = %v, want none", good, err)
		}
	}
	for _, bad := range []string{"", ".", "..", "/", "a/b", "/a", "a/", "../a", "a\x00", strings.Repeat("n", 256),
		strings.Repeat("n", 100_000)} {
		wantKind(t, Name(bad), failure.Invalid)
	}
}

func TestAbsolute(t *testing.T) {
	for given, want := range map[string]string{
		"/": "/", "/a": "/a", "/a/": "/a", "/a/b c/..d": "/a/b c/..d", "/a/...": "/a/...",
	} {
		if got, err := Absolute(given); got != want || err != nil {
			t.Errorf("Absolute(%q) = %q, %v, want %q", given, got, err, want)
		}
	}
	for _, bad := range []string{
		"", "a", "./a", "../a", "/a/../b", "/..", "/.", "/a/.", "/a/./b", "//", "//a", "/a//b", "/a//", "/a\x00b",
		"/" + strings.Repeat("p", 4095), "/" + strings.Repeat("p/", 50_000),
	} {
		_, err := Absolute(bad)
		wantKind(t, err, failure.Invalid)
	}
	if _, err := Absolute("/a/../b"); err == nil || !strings.Contains(err.Error(), `"/a/../b"`) {
		t.Errorf("the error does not name the path: %v", err)
	}
}

func TestWithin(t *testing.T) {
	for _, test := range []struct {
		root, path string
		want       bool
	}{
		{"/mnt/disks", "/mnt/disks", true},
		{"/mnt/disks", "/mnt/disks/a/b", true},
		{"/mnt/disks/", "/mnt/disks/a", true},
		{"/mnt/disks", "/mnt/disks2", false},
		{"/mnt/disks", "/mnt", false},
		{"/mnt/disks", "/mnt/disks/../x", false},
		{"/mnt/disks", "mnt/disks/a", false},
		{"/", "/anything", true},
		{"/", "relative", false},
		{".", "a", true},
		{".", "../a", false},
		{"a", "a/b", true},
		{"a", "/a/b", false},
	} {
		if got := Within(test.root, test.path); got != test.want {
			t.Errorf("Within(%q, %q) = %t, want %t", test.root, test.path, got, test.want)
		}
	}
}

func FuzzAbsolute(f *testing.F) {
	for _, s := range []string{"/a/b", "/a/../b", "", "/\x00", "//", "/a/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := Absolute(s)
		if err != nil {
			wantKind(t, err, failure.Invalid)
			return
		}
		if !path.IsAbs(got) || path.Clean(got) != got || strings.ContainsRune(got, 0) || len(got) > maxPath {
			t.Errorf("Absolute(%q) = %q, which is not a plain absolute path", s, got)
		}
		if got != s && got+"/" != s {
			t.Errorf("Absolute(%q) = %q, which is another path", s, got)
		}
		if !Within("/", got) || !Within(got, got) {
			t.Errorf("%q is not within itself", got)
		}
	})
}

func FuzzName(f *testing.F) {
	for _, s := range []string{"a", "..", "a/b", "", "\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if err := Name(s); err != nil {
			wantKind(t, err, failure.Invalid)
			return
		}
		if dir, base := path.Split(path.Join("/root", s)); dir != "/root/" || base != s {
			t.Errorf("the name %q leads to %q in %q", s, base, dir)
		}
	})
}

func target(t *testing.T, p string) *Target {
	t.Helper()
	target, err := OpenTarget(p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = target.Close() })
	return target
}

func TestOpenTarget(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	longName := strings.Repeat("n", 256)
	for p, want := range map[string]failure.Kind{
		dir + "/none/a":              failure.NotFound,
		dir + "/file/a":              failure.Invalid,
		dir + "/../a":                failure.Invalid,
		"/":                          failure.Invalid,
		"relative/a":                 failure.Invalid,
		"/proc/self/cwd/a":           failure.Invalid,
		dir + "/" + longName + "/a":  failure.Invalid,
		dir + "/" + longName + "bcd": failure.Invalid,
	} {
		_, err := OpenTarget(p)
		wantKind(t, err, want)
	}
	if got := target(t, dir+"/a/").Path(); got != dir+"/a" {
		t.Errorf("Path = %q", got)
	}
}

func TestMakeDir(t *testing.T) {
	dir := t.TempDir()
	a := target(t, dir+"/a")
	for _, want := range []bool{true, false} {
		if created, err := a.MakeDir(0o750); created != want || err != nil {
			t.Errorf("MakeDir = %t, %v, want %t", created, err, want)
		}
	}
	if info, err := os.Lstat(dir + "/a"); err != nil || info.Mode() != os.ModeDir|0o750 {
		t.Errorf("made %v, %v", info.Mode(), err)
	}
	f := target(t, dir+"/f")
	for _, want := range []bool{true, false} {
		if created, err := f.MakeFile(0o600); created != want || err != nil {
			t.Errorf("MakeFile = %t, %v, want %t", created, err, want)
		}
	}
	if info, err := os.Lstat(dir + "/f"); err != nil || info.Mode() != 0o600 {
		t.Errorf("made %v, %v", info.Mode(), err)
	}
	_, err := a.MakeFile(0o600)
	wantKind(t, err, failure.Invalid)
	_, err = f.MakeDir(0o700)
	wantKind(t, err, failure.Invalid)
}

// Nothing is created or opened through a symlink, wherever it leads, and the error names it.
func TestSymlinkIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(dir+"/dir", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{"dir", "file", "nowhere", dir + "/dir", "/proc/self/root"} {
		link := dir + "/link"
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
		l := target(t, link)
		_, errDir := l.MakeDir(0o700)
		_, errFile := l.MakeFile(0o600)
		_, errOpen := l.Open()
		for _, err := range []error{errDir, errFile, errOpen} {
			wantKind(t, err, failure.Invalid)
			if err == nil || !strings.Contains(err.Error(), "symlink") || !strings.Contains(err.Error(), link) {
				t.Errorf("the error does not name the symlink: %v", err)
			}
		}
		if err := l.Remove(); err != nil {
			t.Errorf("removing the symlink itself: %v", err)
		}
	}
	for _, name := range []string{"dir", "file"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			t.Errorf("what a symlink led to is gone: %v", err)
		}
	}
	if _, err := os.Lstat(dir + "/nowhere"); !errors.Is(err, os.ErrNotExist) {
		t.Error("something was made through a symlink")
	}
}

// The parent is held open: later changes of its name do not matter.
func TestParentIsHeld(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"/parent", "/elsewhere"} {
		if err := os.Mkdir(dir+name, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	a := target(t, dir+"/parent/a")
	if err := errors.Join(os.Rename(dir+"/parent", dir+"/moved"), os.Symlink("elsewhere", dir+"/parent")); err != nil {
		t.Fatal(err)
	}
	if created, err := a.MakeDir(0o700); !created || err != nil {
		t.Fatalf("MakeDir = %t, %v", created, err)
	}
	if _, err := os.Lstat(dir + "/moved/a"); err != nil {
		t.Errorf("not made in the directory that was opened: %v", err)
	}
	if _, err := os.Lstat(dir + "/elsewhere/a"); err == nil {
		t.Error("made in a directory that took the name of the one that was opened")
	}
	var pinned, moved unix.Stat_t
	if err := errors.Join(unix.Stat(a.Pinned(), &pinned), unix.Stat(dir+"/moved/a", &moved)); err != nil ||
		pinned.Ino != moved.Ino {
		t.Errorf("Pinned leads elsewhere: %v", err)
	}
}

// Another goroutine swaps a directory and a symlink as fast as it can: Open never returns what the symlink leads to.
func TestOpenAgainstSwap(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.Mkdir(dir+"/secret", 0o700), os.Mkdir(dir+"/a", 0o700),
		os.Symlink("secret", dir+"/b")); err != nil {
		t.Fatal(err)
	}
	var secret unix.Stat_t
	if err := unix.Stat(dir+"/secret", &secret); err != nil {
		t.Fatal(err)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, dir+"/a", unix.AT_FDCWD, dir+"/b", unix.RENAME_EXCHANGE)
			}
		}
	}()
	a := target(t, dir+"/a")
	opened, refused := 0, 0
	// On a busy machine the two may take turns for long: try at least this often, and then until both were seen.
	end := time.Now().Add(2 * time.Minute)
	for tries := 0; tries < 20_000 || (opened == 0 || refused == 0) && time.Now().Before(end); tries++ {
		f, err := a.Open()
		if err != nil {
			wantKind(t, err, failure.Invalid)
			refused++
			continue
		}
		var stat unix.Stat_t
		if err := unix.Fstat(int(f.Fd()), &stat); err != nil || stat.Ino == secret.Ino ||
			stat.Mode&unix.S_IFMT != unix.S_IFDIR {
			t.Fatalf("opened what the symlink leads to, or the symlink: %v", err)
		}
		opened++
		_ = f.Close() // O_PATH
	}
	close(stop)
	<-stopped
	if opened == 0 || refused == 0 {
		t.Errorf("opened %d times and refused %d times: nothing was swapped", opened, refused)
	}
}

func TestRemove(t *testing.T) {
	dir := t.TempDir()
	a := target(t, dir+"/a")
	if err := a.Remove(); err != nil {
		t.Errorf("removing nothing: %v", err)
	}
	if _, err := a.MakeDir(0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/a/data", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	wantKind(t, a.Remove(), failure.InUse)
	if err := os.Remove(dir + "/a/data"); err != nil {
		t.Fatal(err)
	}
	if err := a.Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := a.MakeFile(0o600); err != nil {
		t.Fatal(err)
	}
	if err := a.Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Open(); !failure.Is(err, failure.NotFound) {
		t.Errorf("opening nothing: %v", err)
	}
}

func TestOtherTypes(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mkfifo(dir+"/fifo", 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := target(t, dir+"/fifo").MakeFile(0o600)
	wantKind(t, err, failure.Invalid)
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: needs root, for device nodes")
	}
	// A device node that is not a mount would be written through.
	if err := unix.Mknod(dir+"/disk", unix.S_IFBLK|0o600, int(unix.Mkdev(7, 0))); err != nil {
		t.Fatal(err)
	}
	_, err = target(t, dir+"/disk").MakeFile(0o600)
	wantKind(t, err, failure.Invalid)
	if err := unix.Mknod(dir+"/tty", unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))); err != nil {
		t.Fatal(err)
	}
	_, err = target(t, dir+"/tty").MakeDir(0o700)
	wantKind(t, err, failure.Invalid)
}
