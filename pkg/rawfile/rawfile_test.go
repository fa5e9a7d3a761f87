package rawfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/rawfile"
)

func TestOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if _, err := rawfile.Read(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("reading what is not there: %v", err)
	}
	for _, text := range []string{"one", "two"} {
		file, err := rawfile.Open(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteString(text); err != nil {
			t.Error(err)
		}
		flags, err := unix.FcntlInt(file.Fd(), unix.F_GETFD, 0)
		if err != nil || flags&unix.FD_CLOEXEC == 0 {
			t.Errorf("a program that is started inherits the file (%v)", err)
		}
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	}
	if text, err := rawfile.Read(path); string(text) != "onetwo" || err != nil {
		t.Errorf("the file holds %q (%v)", text, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("the file is %v (%v)", info, err)
	}
}

func TestReadSysfs(t *testing.T) {
	text, err := rawfile.Read("/sys/kernel/mm/transparent_hugepage/enabled")
	want, errOs := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	if string(text) != string(want) || (err == nil) != (errOs == nil) {
		t.Errorf("got %q (%v), want %q (%v)", text, err, want, errOs)
	}
}
