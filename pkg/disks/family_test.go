package disks_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
	of := func(s report.State, id string) (found report.Deletion) {
		for _, d := range s.Deletions {
			if d.ID == id {
				found = d
			}
		}
		return found
	}
	must(t, e.Want(report.Wanted{Offers: offers, Deletions: deletions}))
	s = await(t, e, "the partition is wiped", func(s report.State) bool {
		return of(s, "db").State == report.Complete || strings.Contains(of(s, "db").Message, "is offered")
	}) // The two may find each other open at first.
	if of(s, "db").State != report.Complete || of(s, "da").State == report.Complete {
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
// filesystem is not emptied while the disk is offered, whose user may have created it.
func TestMountOfAnOfferedDisk(t *testing.T) {
	node := testfs.Attach(t, image(t, 64*mib))
	testfs.Format(t, "ext4", node)
	at := testfs.Mount(t, node)
	file := filepath.Join(at, "file")
	must(t, os.WriteFile(file, []byte(canary), 0o600))
	e, _ := newBench(t, fmt.Sprintf("devices: [{paths: [%s]}]\nmountPoints: [{paths: ['%s']}]", node, at)).start(t)
	s := await(t, e, "found", func(s report.State) bool {
		return mountedAt(s, at).Name != "" && blockAt(s, node).Name != ""
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
}

// blockAt returns the volume that a device is.
func blockAt(s report.State, node string) (found report.Volume) {
	for _, v := range s.Volumes {
		if v.Device == node && v.Mode == report.Block {
			found = v
		}
	}
	return found
}
