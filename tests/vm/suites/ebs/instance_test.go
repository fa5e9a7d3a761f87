package ebs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/ebs"
	"github.com/stowage-csi/stowage/tests/cloud/region"
	"github.com/stowage-csi/stowage/tests/inprocess"
	"github.com/stowage-csi/stowage/tests/vm/hotplug"
	"github.com/stowage-csi/stowage/tests/vm/nvmet"
)

// disk is a disk that is plugged in.
type disk interface {
	Unplug(ctx context.Context) error
}

// model is the model that EBS's disks report.
const model = "Amazon Elastic Block Store"

// instance is the guest in the role of an EC2 instance, with its cloud and its driver.
type instance struct {
	*testing.T
	region *region.Region
	driver *inprocess.Driver
	began  time.Time
	images string        // the content of the disks of package nvmet
	served bool          // disks are those of package nvmet
	empty  bool          // attached volumes are not plugged in
	late   time.Duration // the delay between the attachment and the disk

	plugging sync.WaitGroup // of delayed disks
	mu       sync.Mutex     // guards the following fields
	machine  *hotplug.Machine
	disks    map[string]disk // by volume
}

// newInstance starts an instance and its driver until the test ends.
func newInstance(t *testing.T, edit func(*instance)) *instance {
	t.Helper()
	i := &instance{T: t, began: time.Now(), images: t.TempDir(), disks: map[string]disk{}}
	if edit != nil {
		edit(i)
	}
	var err error
	i.machine, err = hotplug.Connect(i.ctx())
	i.must(err)
	t.Cleanup(i.pullAll)
	config := region.Quick()
	config.Plugged, config.Unplugged, config.Resized = i.plugged, i.unplugged, i.resized
	i.region = region.New(t, config, 0)
	definition := ebs.Definition()
	open := definition.Open
	definition.Open = func(ctx context.Context, o backends.Options) (*backends.Instance, error) {
		i.region.Configure(&o)
		// The cloud answers once a disk is gone, which may take seconds, as anything may with an emulated processor.
		timing := &o.Config.(*ebs.Config).Timing
		timing.Call, timing.Read, timing.Settle = time.Minute, time.Minute, time.Minute
		return open(ctx, o)
	}
	i.driver = inprocess.Start(t, inprocess.Options{Definition: &definition, NodeID: region.NodeA})
	return i
}

// ctx returns the test's context, without the cancellation when the test's cleanup begins.
func (i *instance) ctx() context.Context { return context.WithoutCancel(i.Context()) }

func (i *instance) must(err error) {
	i.Helper()
	if err != nil {
		i.Fatal(err)
	}
}

func (i *instance) check(err error) {
	i.Helper()
	if err != nil {
		i.Error(err)
	}
}

// plugged is called by the cloud after a volume is attached.
func (i *instance) plugged(node, volume string, size int) {
	if node != region.NodeA || i.empty {
		return
	}
	if i.late == 0 {
		i.plug(volume, size)
		return
	}
	i.plugging.Go(func() {
		<-time.After(i.late)
		i.plug(volume, size)
	})
}

// plug gives the instance the disk of a volume, with the volume's content.
func (i *instance) plug(volume string, size int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	var d disk
	var err error
	if i.served {
		path := filepath.Join(i.images, volume+".img")
		i.check(grown(path, int64(size)*gib))
		d, err = nvmet.Plug(i.ctx(), nvmet.Disk{Serial: region.Serial(volume), Model: model, File: path})
	} else {
		d, err = i.machine.Plug(i.ctx(), hotplug.Disk{Model: hotplug.NVMe, Serial: region.Serial(volume),
			Bytes: int64(size) * gib, File: i.name(volume)})
	}
	if err != nil {
		i.Errorf("%s cannot be plugged in: %v", volume, err)
		return
	}
	i.disks[volume] = d
}

// name returns the file name of a volume's disk in the folder shared with the host. Each cloud starts with the same
// IDs.
func (i *instance) name(volume string) string {
	return fmt.Sprintf("%s-%d.img", volume, i.began.UnixNano())
}

// grown makes sure that a file has at least the given size.
func grown(path string, bytes int64) error {
	info, err := os.Stat(path)
	if err == nil && info.Size() >= bytes {
		return nil
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	return file.Truncate(bytes)
}

// unplugged is called by the cloud when a volume is to be detached. The detachment completes only once the instance has
// released the disk.
func (i *instance) unplugged(node, volume string) {
	if node == region.NodeA {
		i.pull(volume)
	}
}

// pull removes the disk of a volume if it exists.
func (i *instance) pull(volume string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	d, ok := i.disks[volume]
	if !ok {
		return
	}
	delete(i.disks, volume)
	if err := d.Unplug(i.ctx()); err != nil {
		i.Errorf("%s cannot be unplugged: %v", volume, err)
	}
}

// tear is pull without notice to the guest, where disks support that.
func (i *instance) tear(volume string) {
	i.mu.Lock()
	d, ok := i.disks[volume].(*nvmet.Plugged)
	if ok {
		delete(i.disks, volume)
	}
	i.mu.Unlock()
	if !ok {
		i.pull(volume)
		return
	}
	i.check(d.Tear(i.ctx()))
}

// resized is called by the cloud when an attached volume has grown. A disk of QEMU shows the new size once it is
// plugged in again.
func (i *instance) resized(node, volume string, size int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if d, ok := i.disks[volume].(*nvmet.Plugged); ok && node == region.NodeA {
		i.check(d.Grow(int64(size) * gib))
	}
}

// pullAll removes the disks that a failed test has left.
func (i *instance) pullAll() {
	i.plugging.Wait()
	for volume := range i.disks {
		i.pull(volume)
	}
	i.check(i.machine.Close())
}

// stray plugs in a blank disk that belongs to no attachment, until the test ends or it is pulled by the returned name.
func (i *instance) stray(serial string, bytes int64) (name, path string) {
	i.Helper()
	i.mu.Lock()
	defer i.mu.Unlock()
	name = "stray"
	image := filepath.Join(i.images, name)
	i.must(grown(image, bytes))
	// On PCI, the kernel would refuse a second disk with the same serial number.
	d, err := nvmet.Plug(i.ctx(), nvmet.Disk{Serial: serial, Model: model, File: image})
	i.must(err)
	i.disks[name] = d
	return name, d.Path
}

// devices returns the disks with the serial number of a volume.
func (i *instance) devices(volume string) (paths []string) {
	i.Helper()
	found, err := filepath.Glob("/sys/block/nvme*n*/device/serial")
	i.must(err)
	for _, path := range found {
		text, err := os.ReadFile(path)
		node := filepath.Join("/dev", filepath.Base(filepath.Dir(filepath.Dir(path))))
		if _, missing := os.Stat(node); err == nil && missing == nil &&
			strings.TrimSpace(string(text)) == region.Serial(volume) {
			paths = append(paths, node)
		}
	}
	return paths
}

// device returns the only disk with the serial number of a volume.
func (i *instance) device(volume string) string {
	i.Helper()
	paths := i.devices(volume)
	if len(paths) != 1 {
		i.Fatalf("the disks of %s are %v, want one", volume, paths)
	}
	return paths[0]
}

// blank fails the test if the parts of a disk to which mkfs writes have been written to.
func (i *instance) blank(device string) {
	i.Helper()
	file, err := os.Open(device)
	i.must(err)
	defer file.Close()
	for _, at := range []int64{0, 32 * mib} {
		piece := make([]byte, 8*mib)
		_, err := file.ReadAt(piece, at)
		i.must(err)
		for n, b := range piece {
			if b != 0 {
				i.Fatalf("%s: there is data at %d", device, at+int64(n))
			}
		}
	}
}

// nothing fails the test if a filesystem or device node is mounted anywhere below the tests' folder.
func (i *instance) nothing() {
	i.Helper()
	text, err := os.ReadFile("/proc/self/mountinfo")
	i.must(err)
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, fmt.Sprintf(" %s/", os.TempDir())) {
			i.Errorf("there is a mount left: %s", line)
		}
	}
}
