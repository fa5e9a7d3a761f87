package disks_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stowage-csi/stowage/pkg/disks"
	"github.com/stowage-csi/stowage/pkg/disks/method"
	"github.com/stowage-csi/stowage/pkg/disks/report"
	"github.com/stowage-csi/stowage/tests/testfs"
)

// never waits for a state of the only volume, and fails if it is in the other state first.
func never(t *testing.T, e *disks.Engine, first, wanted string) {
	t.Helper()
	await(t, e, wanted, func(s report.State) bool {
		if in(first)(s) {
			t.Fatalf("it is %s before it is %s: %+v", first, wanted, s.Volumes)
		}
		return in(wanted)(s)
	})
}

// TestOfferIsProven mounts a disk after it was found free and before it is offered. The offer is not acknowledged
// before the disk is free again, not even by a restarted engine.
func TestOfferIsProven(t *testing.T) {
	node := testfs.Attach(t, image(t, 64*mib))
	testfs.Format(t, "ext4", node)
	b := newBench(t, fmt.Sprintf("devices: [{paths: [%s], notBlank: true}]", node))
	e, stop := b.start(t)
	v := await(t, e, "found", in(report.Available)).Volumes[0]
	wanted := report.Wanted{Offers: offer(v.Name, "a")}
	again := func() { stop(); e, _ = b.start(t) }
	t.Run("mounted", func(t *testing.T) {
		testfs.Mount(t, node)
		must(t, e.Want(wanted))
		never(t, e, report.Offered, report.InUse)
		again()
		await(t, e, "not told yet, it counts as offered", in(report.Offered))
		must(t, e.Want(wanted))
		never(t, e, report.Offered, report.InUse)
	})
	must(t, e.Want(report.Wanted{Offers: append(offer(v.Name, "a"), offer("disk-of-another", "b")...)})) // It looks again.
	await(t, e, "acknowledged", in(report.Offered))
	must(t, e.Want(report.Wanted{}))
	await(t, e, "dirty", in(report.Dirty))
}

// TestWithdrawnOffer checks that a withdrawn offer that was never acknowledged leaves the volume as it is found, but
// dirty instead of available: an earlier master did not wait.
func TestWithdrawnOffer(t *testing.T) {
	node := testfs.Attach(t, image(t, 64*mib))
	testfs.Format(t, "ext4", node)
	e, _ := newBench(t, fmt.Sprintf("devices: [{paths: [%s], notBlank: true}]", node)).start(t)
	v := await(t, e, "found", in(report.Available)).Volumes[0]
	t.Run("mounted", func(t *testing.T) {
		testfs.Mount(t, node)
		must(t, e.Want(report.Wanted{Offers: offer(v.Name, "a")}))
		never(t, e, report.Offered, report.InUse)
		must(t, e.Want(report.Wanted{Offers: offer("disk-of-another", "b")}))
		await(t, e, "still in use", in(report.InUse))
	})
	must(t, e.Want(report.Wanted{}))
	never(t, e, report.Available, report.Dirty)
	must(t, e.Want(report.Wanted{Deletions: remove(v.Name, "d", method.Zero)}))
	await(t, e, "wiped", deletion(report.Complete))
	must(t, e.Want(report.Wanted{}))
	await(t, e, "clean", in(report.Available))
}

// TestOldNotes checks that offers of an engine that proved none stay acknowledged: their volumes are in use.
func TestOldNotes(t *testing.T) {
	node := testfs.Attach(t, image(t, 64*mib))
	testfs.Format(t, "ext4", node)
	b := newBench(t, fmt.Sprintf("devices: [{paths: [%s], notBlank: true}]", node))
	e, stop := b.start(t)
	v := await(t, e, "found", in(report.Available)).Volumes[0]
	stop()
	note := filepath.Join(b.state, "volumes", v.Name+".json")
	must(t, os.WriteFile(note, []byte(`{"offer":"a","dirty":true}`), 0o600))
	testfs.Mount(t, node)
	e, _ = b.start(t)
	must(t, e.Want(report.Wanted{Offers: offer(v.Name, "a")}))
	await(t, e, "offered", in(report.Offered))
}

// TestProofRemembersTheWipe offers what a wipe of signatures left, which would otherwise be unknown data.
func TestProofRemembersTheWipe(t *testing.T) {
	node := testfs.Attach(t, image(t, 256*mib))
	e, _ := newBench(t, fmt.Sprintf("devices: [{paths: [%s]}]", node)).start(t)
	v := await(t, e, "found", in(report.Available)).Volumes[0]
	must(t, e.Want(report.Wanted{Offers: offer(v.Name, "a")}))
	await(t, e, "acknowledged", in(report.Offered))
	f, err := os.OpenFile(v.Path, os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteAt([]byte(canary), 96*mib) // At a place without signatures that a look reads.
	must(t, errors.Join(err, f.Sync(), f.Close()))
	must(t, e.Want(report.Wanted{Deletions: remove(v.Name, "d", method.Signatures)}))
	await(t, e, "wiped", deletion(report.Complete))
	must(t, e.Want(report.Wanted{Offers: offer(v.Name, "b")}))
	never(t, e, report.NotBlank, report.Offered)
}

// TestLeftByNoWipe offers a volume again with what a tenant left, for a class without a wipe. It does not offer later
// contents.
func TestLeftByNoWipe(t *testing.T) {
	node := testfs.Attach(t, image(t, 64*mib))
	b := newBench(t, fmt.Sprintf("devices: [{paths: [%s]}]", node))
	e, stop := b.start(t)
	v := await(t, e, "found", in(report.Available)).Volumes[0]
	must(t, e.Want(report.Wanted{Offers: offer(v.Name, "a")}))
	await(t, e, "acknowledged", in(report.Offered))
	testfs.Format(t, "ext4", node)
	must(t, e.Want(report.Wanted{Offers: offer(v.Name, "a"), Deletions: remove(v.Name, "d", method.None)}))
	await(t, e, "given back", deletion(report.Complete))
	must(t, e.Want(report.Wanted{Offers: offer(v.Name, "b")}))
	never(t, e, report.NotBlank, report.Offered)
	must(t, e.Want(report.Wanted{Offers: offer(v.Name, "b"), Deletions: remove(v.Name, "d2", method.None)}))
	await(t, e, "given back unused", deletion(report.Complete))
	must(t, e.Want(report.Wanted{}))
	await(t, e, "to be offered", in(report.Available))
	stop()
	testfs.Format(t, "ext4", node)
	e, _ = b.start(t)
	must(t, e.Want(report.Wanted{}))
	never(t, e, report.Available, report.NotBlank)
}
