package disks_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/disks"
	"github.com/stowage-csi/stowage/pkg/disks/method"
	"github.com/stowage-csi/stowage/pkg/disks/report"
	"github.com/stowage-csi/stowage/tests/testfs"
)

// TestOldLinks checks that a directory of links on a disk, from an earlier version, becomes a link to the one in
// memory, and that only links are removed.
func TestOldLinks(t *testing.T) {
	node := testfs.Attach(t, image(t, 64*mib))
	b := newBench(t, fmt.Sprintf("devices: [{paths: [%s]}]", node))
	must(t, os.MkdirAll(b.path, 0o755))
	must(t, os.Symlink("/dev/loop-of-before", filepath.Join(b.path, "disk-1")))
	file := filepath.Join(b.path, "file")
	must(t, os.WriteFile(file, nil, 0o600))
	if _, err := disks.Open(b.options(t)); err == nil || !strings.Contains(err.Error(), b.path) {
		t.Errorf("with a file in it: %v", err)
	}
	must(t, os.Remove(file))
	for range 2 { // The second time it is already a link.
		e, stop := b.start(t)
		v := await(t, e, "found", in(report.Available)).Volumes[0]
		if to, err := os.Readlink(b.path); err != nil || to != b.links {
			t.Errorf("%s leads to %q (%v), want %s", b.path, to, err, b.links)
		}
		if to, err := os.Readlink(v.Path); err != nil || to != node || filepath.Dir(v.Path) != b.path {
			t.Errorf("the link %s leads to %q (%v), want %s", v.Path, to, err, node)
		}
		if _, err := os.Lstat(filepath.Join(b.path, "disk-1")); err == nil {
			t.Error("a link of an earlier version can be followed")
		}
		stop()
	}
}

// TestLinksOutliveNoBoot checks that links are kept in memory only.
func TestLinksOutliveNoBoot(t *testing.T) {
	b := newBench(t, "devices: [{paths: [/dev/none]}]")
	b.links = filepath.Join(testfs.New(t, "ext4", 64), "links")
	if _, err := disks.Open(b.options(t)); err == nil || !strings.Contains(err.Error(), "is on a disk") {
		t.Errorf("links on a disk: %v", err)
	}
	if _, err := os.Lstat(b.path); err == nil {
		t.Error("a path leads to links on a disk")
	}
}

// TestSwapped has another disk take the node of a volume while no engine runs.
func TestSwapped(t *testing.T) {
	node, other := testfs.Attach(t, image(t, 64*mib)), testfs.Attach(t, image(t, 64*mib))
	b := newBench(t, fmt.Sprintf("devices: [{paths: [%s]}]", node))
	e, stop := b.start(t)
	v := await(t, e, "found", in(report.Available)).Volumes[0]
	must(t, e.Want(report.Wanted{Offers: offer(v.Name, "a")}))
	await(t, e, "offered", in(report.Offered))
	stop()
	must(t, os.Remove(v.Path))
	must(t, os.Symlink(other, v.Path))
	e, _ = b.start(t)
	await(t, e, "found", in(report.Offered))
	if to, err := os.Readlink(v.Path); err != nil || to != node {
		t.Errorf("the link leads to %q (%v), want %s", to, err, node)
	}
}

// TestStaleLink checks that an engine does not look for disks while a link leads elsewhere: until then, a program that
// follows the link gets another volume's disk.
func TestStaleLink(t *testing.T) {
	b := newBench(t, "devices: [{paths: [/dev/none]}]")
	e, err := disks.Open(b.options(t))
	must(t, err)
	must(t, os.Symlink("/dev/null", filepath.Join(b.links, "disk-1")))
	must(t, unix.Mount("", filepath.Dir(b.links), "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := e.Run(ctx); err == nil || !strings.Contains(err.Error(), "disk-1") {
		t.Errorf("with a link that cannot be removed the engine ends with %v", err)
	}
}

// TestUnselected checks that an offered volume keeps its link when no rule selects it any more, whatever its node, and
// loses the link with the offer.
func TestUnselected(t *testing.T) {
	file := image(t, 64*mib)
	b := newBench(t, "")
	var v report.Volume
	t.Run("selected", func(t *testing.T) {
		b.config = fmt.Sprintf("devices: [{paths: [%s]}]", testfs.Attach(t, file))
		e, stop := b.start(t)
		v = await(t, e, "found", in(report.Available)).Volumes[0]
		must(t, e.Want(report.Wanted{Offers: offer(v.Name, "a")}))
		await(t, e, "acknowledged", in(report.Offered))
		stop()
	})
	node := testfs.Attach(t, file)
	b.config = "devices: [{paths: [/dev/none]}]"
	e, _ := b.start(t)
	leads := func(to string) func(report.State) bool {
		return func(s report.State) bool {
			now, _ := os.Readlink(v.Path) // It may be gone.
			return s.Problem == "" && now == to
		}
	}
	await(t, e, "led to, not told yet", leads(node))
	must(t, e.Want(report.Wanted{Offers: offer(v.Name, "a")}))
	must(t, e.Want(report.Wanted{Offers: append(offer(v.Name, "a"), offer("disk-of-another", "b")...)})) // It looks again.
	if s := await(t, e, "led to", leads(node)); len(s.Volumes) > 0 {
		t.Errorf("found are %+v", s.Volumes)
	}
	must(t, e.Want(report.Wanted{}))
	await(t, e, "looked at again", func(s report.State) bool {
		must(t, e.Want(report.Wanted{Offers: offer("disk-of-another", s.Revision)})) // It looks again.
		return leads("")(s)
	})
}

// TestRestoredOffer brings back an earlier offer of a volume, as a restore of the cluster's objects does. The
// PersistentVolume of that offer must not lead to the data of a later user, whether a rule selects the disk or not.
// That of the later user does once a newer backup has brought back his offer.
func TestRestoredOffer(t *testing.T) {
	b := newBench(t, fmt.Sprintf("devices: [{paths: [%s]}]", testfs.Attach(t, image(t, 64*mib))))
	e, stop := b.start(t)
	v := await(t, e, "found", in(report.Available)).Volumes[0]
	must(t, e.Want(report.Wanted{Offers: offer(v.Name, "a")}))
	await(t, e, "offered", in(report.Offered))
	must(t, e.Want(report.Wanted{Offers: offer(v.Name, "a"), Deletions: remove(v.Name, "d", method.Zero)}))
	await(t, e, "wiped", deletion(report.Complete))
	must(t, e.Want(report.Wanted{Offers: offer(v.Name, "b")}))
	await(t, e, "offered to another", in(report.Offered))
	use(t, v.Path)
	isLed := func() bool { _, err := os.Lstat(v.Path); return err == nil }
	again := func(s report.State) bool {
		offers := append(offer(v.Name, "a"), offer("disk-of-another", s.Revision)...) // It looks again.
		must(t, e.Want(report.Wanted{Offers: offers}))
		return !isLed()
	}
	await(t, e, "not led to", again)
	must(t, e.Want(report.Wanted{Offers: offer(v.Name, "b")}))
	await(t, e, "led to the data of its own user", func(s report.State) bool { return in(report.Offered)(s) && isLed() })
	if now, err := os.ReadFile(v.Path); err != nil || !bytes.Contains(now, []byte(canary)) {
		t.Errorf("the later user's data are gone (%v)", err)
	}
	await(t, e, "not led to again", again)
	stop()
	b.config = "devices: [{paths: [/dev/none]}]"
	e, _ = b.start(t)
	await(t, e, "looked, not told yet", func(s report.State) bool { return s.Problem == "" })
	if isLed() {
		t.Error("a restarted engine leads to the disk before it is told what is offered")
	}
}
