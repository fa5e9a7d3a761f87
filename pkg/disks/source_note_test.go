package disks_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/disks"
	"github.com/stowage-csi/stowage/pkg/disks/report"
)

// TestStartWritesNoSource checks that an engine with the state of an earlier version, which lacks the note of the
// source, starts while nothing can be written, and that the note is written once it can be.
func TestStartWritesNoSource(t *testing.T) {
	b := newBench(t, "devices: [{paths: [/dev/none]}]")
	must(t, unix.Mount("state", b.state, "tmpfs", 0, ""))
	t.Cleanup(func() { must(t, unix.Unmount(b.state, 0)) })
	open := func() *disks.Engine {
		t.Helper()
		e, err := disks.Open(b.options(t))
		must(t, err)
		return e
	}
	e := open()
	must(t, errors.Join(e.Want(report.Wanted{}), e.Close()))
	must(t, unix.Mount("", b.state, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	e = open()
	newest := report.Wanted{Source: report.Source{Object: "one", Generation: 5}}
	must(t, e.Want(newest))
	must(t, unix.Mount("", b.state, "", unix.MS_REMOUNT, ""))
	must(t, errors.Join(e.Want(newest), e.Close()))
	e = open()
	older := reader{"one", 4, false}.want(e)
	must(t, e.Close())
	if !errors.Is(older, report.ErrOlder) {
		t.Errorf("after a restart an older source gets %v, want %v: the newest was not noted", older, report.ErrOlder)
	}
}

// TestDamagedSource checks that an engine starts although the note of the source cannot be read, and that an agent must
// then prove that its state is the newest.
func TestDamagedSource(t *testing.T) {
	b := newBench(t, "devices: [{paths: [/dev/none]}]")
	e, stop := b.start(t)
	must(t, reader{"one", 5, false}.want(e))
	stop()
	path := filepath.Join(b.state, "agent", "source.json")
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("there is no note to damage: %v", err)
	}
	must(t, os.WriteFile(path, []byte("{"), 0o600))
	e, stop = b.start(t)
	err := (reader{"one", 6, false}).want(e)
	if !errors.Is(err, report.ErrOlder) || !strings.Contains(err.Error(), filepath.Dir(path)) {
		t.Errorf("a source that is not proven gets %v, want %v and the folder of the note", err, report.ErrOlder)
	}
	must(t, reader{"one", 6, true}.want(e))
	must(t, reader{"one", 6, false}.want(e))
	stop()
	e, _ = b.start(t)
	if err := (reader{"one", 5, false}).want(e); !errors.Is(err, report.ErrOlder) {
		t.Errorf("after a restart an older source gets %v, want %v: the note was not mended", err, report.ErrOlder)
	}
	must(t, reader{"one", 6, false}.want(e))
}
