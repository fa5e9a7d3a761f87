package disks_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/pkg/disks/discovery"
	"github.com/stowage-csi/stowage/pkg/disks/method"
	"github.com/stowage-csi/stowage/pkg/disks/report"
	"github.com/stowage-csi/stowage/tests/testfs"
)

// TestBothOffered wipes a disk and its partition that are both offered, as by an earlier version: first the partition,
// then the disk, once the partition's offer is gone.
func TestBothOffered(t *testing.T) {
	file := image(t, 64*mib)
	node := testfs.Attach(t, file)
	part := testfs.Partition(t, node, 1, mib, 48*mib)
	e, _ := newBench(t, fmt.Sprintf("devices: [{paths: [%s, %s], partitions: true}]", node, part)).start(t)
	s := await(t, e, "found", func(s report.State) bool { return named(s, part).State == report.Available })
	disk, partition := named(s, node).Name, named(s, part).Name
	use(t, part)
	offers := append(offer(disk, "a"), offer(partition, "b")...)
	deletions := append(remove(disk, "da", method.Zero), remove(partition, "db", method.Zero)...)
	must(t, e.Want(report.Wanted{Offers: offers, Deletions: deletions}))
	s = await(t, e, "the partition is wiped", func(s report.State) bool {
		return deletionOf(s, "db").State == report.Complete || strings.Contains(deletionOf(s, "db").Message, "is offered")
	}) // The two may find each other open at first.
	if deletionOf(s, "db").State != report.Complete || deletionOf(s, "da").State == report.Complete {
		t.Fatalf("the deletions are %+v, want that of the partition complete, and not that of the disk", s.Deletions)
	}
	must(t, e.Want(report.Wanted{Offers: offers[:1], Deletions: deletions[:1]}))
	await(t, e, "the disk is wiped", deletion(report.Complete))
	if n := canaries(t, file); n > 0 {
		t.Errorf("%d canaries can be read", n)
	}
}

// TestPartitionedMeanwhile partitions a disk after its offer. The disk is then dirty and can be wiped, instead of
// waiting for its partition, which waits for the disk.
func TestPartitionedMeanwhile(t *testing.T) {
	node := testfs.Attach(t, image(t, 64*mib))
	b := newBench(t, fmt.Sprintf("devices: [{paths: ['%s', '%sp*'], partitions: true}]", node, node))
	e, _ := b.start(t)
	disk := await(t, e, "found", in(report.Available)).Volumes[0].Name
	part := testfs.Partition(t, node, 1, mib, 48*mib)
	must(t, e.Want(report.Wanted{Offers: offer(disk, "a")}))
	await(t, e, "not acknowledged", func(s report.State) bool { return named(s, node).State == report.InUse })
	must(t, e.Want(report.Wanted{}))
	await(t, e, "dirty", func(s report.State) bool {
		return named(s, node).State == report.Dirty && named(s, part).State == report.InUse
	})
}

// TestMountOfAnOfferedDisk offers a disk and the filesystem that is mounted on it, as earlier versions did. The
// filesystem is not emptied while the disk is offered, whose user may have created it, unless the disk is to be wiped
// too: that waits for the filesystem to be unmounted.
func TestMountOfAnOfferedDisk(t *testing.T) {
	node := testfs.Attach(t, image(t, 64*mib))
	testfs.Format(t, "ext4", node)
	at := testfs.Mount(t, node)
	file := filepath.Join(at, "file")
	must(t, os.WriteFile(file, []byte(canary), 0o600))
	e, _ := newBench(t, fmt.Sprintf("devices: [{paths: [%s]}]\nmountPoints: [{paths: ['%s']}]", node, at)).start(t)
	s := await(t, e, "found", func(s report.State) bool {
		return isKnown(mountedAt(s, at)) && isKnown(blockAt(s, node))
	})
	disk, mount := blockAt(s, node).Name, mountedAt(s, at).Name
	offers := append(offer(disk, "a"), offer(mount, "b")...)
	must(t, e.Want(report.Wanted{Offers: offers, Deletions: remove(mount, "d", method.Zero)}))
	await(t, e, "refused", func(s report.State) bool {
		return deletion(report.Complete)(s) ||
			deletion(report.Failed)(s) && strings.Contains(s.Deletions[0].Message, disk)
	})
	if _, err := os.Stat(file); err != nil {
		t.Errorf("the filesystem was emptied under the user of its disk: %v", err)
	}
	deletions := append(remove(mount, "d", method.Zero), remove(disk, "dd", method.Zero)...)
	must(t, e.Want(report.Wanted{Offers: offers, Deletions: deletions}))
	await(t, e, "emptied", func(s report.State) bool { return deletionOf(s, "d").State == report.Complete })
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
}

// TestDiskOfAnOfferedFilesystem checks that a disk is not wiped while an offered filesystem on it is not mounted.
func TestDiskOfAnOfferedFilesystem(t *testing.T) {
	file, at := image(t, 64*mib), t.TempDir()
	node := testfs.Attach(t, file)
	testfs.Format(t, "ext4", node)
	e, _ := newBench(t, fmt.Sprintf("devices: [{paths: [%s]}]\nmountPoints: [{paths: ['%s']}]", node, at)).start(t)
	var disk, mount string
	t.Run("mounted", func(t *testing.T) {
		testfs.MountAt(t, node, at)
		must(t, os.WriteFile(filepath.Join(at, "file"), []byte(canary), 0o600))
		s := await(t, e, "found", func(s report.State) bool {
			return isKnown(mountedAt(s, at)) && isKnown(blockAt(s, node))
		})
		disk, mount = blockAt(s, node).Name, mountedAt(s, at).Name
	})
	must(t, e.Want(report.Wanted{Offers: offer(mount, "a"), Deletions: remove(disk, "reclaimed", method.Zero)}))
	await(t, e, "refused", func(s report.State) bool {
		return deletion(report.Complete)(s) ||
			deletion(report.Failed)(s) && strings.Contains(s.Deletions[0].Message, mount)
	})
	if canaries(t, file) == 0 {
		t.Error("the disk was wiped under the user of the filesystem on it")
	}
}

// TestCopiedFilesystem wipes a disk whose user has copied a filesystem that is offered elsewhere.
func TestCopiedFilesystem(t *testing.T) {
	at := t.TempDir()
	node := testfs.Attach(t, image(t, 64*mib))
	testfs.Format(t, "ext4", node)
	const config = "devices: [{paths: [%s], notBlank: true}]\nmountPoints: [{paths: ['%s']}]"
	e, _ := newBench(t, fmt.Sprintf(config, node, at)).start(t)
	disk := await(t, e, "found", in(report.Available)).Volumes[0].Name
	must(t, e.Want(report.Wanted{Offers: offer(disk, "a")}))
	await(t, e, "acknowledged", in(report.Offered))
	var copied string
	t.Run("mounted", func(t *testing.T) {
		testfs.MountAt(t, node, at)
		s := await(t, e, "found", func(s report.State) bool { return isKnown(mountedAt(s, at)) })
		copied = mountedAt(s, at).Name
	})
	offers := append(offer(disk, "a"), offer(copied, "b")...)
	must(t, e.Want(report.Wanted{Offers: offers, Deletions: remove(disk, "d", method.Zero)}))
	await(t, e, "wiped", deletion(report.Complete))
}

// deletionOf returns the deletion of an ID.
func deletionOf(s report.State, id string) (found report.Deletion) {
	for _, d := range s.Deletions {
		if d.ID == id {
			found = d
		}
	}
	return found
}

// isKnown reports whether a volume is found, and its identity was read.
func isKnown(v report.Volume) bool { return v.Name != "" && v.Identity != discovery.NoIdentity }

// blockAt returns the volume that a device is.
func blockAt(s report.State, node string) (found report.Volume) {
	for _, v := range s.Volumes {
		if v.Device == node && v.Mode == report.Block {
			found = v
		}
	}
	return found
}
