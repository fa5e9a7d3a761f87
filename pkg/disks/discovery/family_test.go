package discovery_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/pkg/disks/discovery"
	"github.com/stowage-csi/stowage/pkg/disks/report"
	"github.com/stowage-csi/stowage/tests/testfs"
)

// TestFamily checks that a user of a disk also uses its partitions, and vice versa.
func TestFamily(t *testing.T) {
	const whole, first, second = 0, 1, 2
	nothing := func(*testing.T, string) {}
	loop := func(t *testing.T, node string) { t.Helper(); testfs.Attach(t, node) }
	for name, c := range map[string]struct {
		used  int
		use   func(t *testing.T, node string)
		past  discovery.History // of what is used
		found int
		state string
		says  string
	}{
		"a process has the disk open": {used: whole, use: hold, found: second, state: report.InUse,
			says: "process"},
		"a loop device holds the disk": {used: whole, use: loop, found: second, state: report.InUse,
			says: "loop device"},
		"a process has the partition open": {used: first, use: hold, found: whole, state: report.InUse,
			says: "process"},
		"a loop device holds the partition": {used: first, use: loop, found: whole, state: report.InUse,
			says: "loop device"},
		"a process has the other partition open": {used: first, use: hold, found: second, state: report.Available},
		"the disk is offered": {used: whole, use: nothing, past: discovery.History{Taken: true}, found: second,
			state: report.InUse, says: "disk-"},
		"the partition is offered": {used: first, use: nothing, past: discovery.History{Taken: true}, found: whole,
			state: report.InUse, says: "disk-"},
		"the partition was offered and not wiped": {used: first, use: nothing, past: discovery.History{Dirty: true},
			found: whole, state: report.InUse, says: "disk-"},
		"the other partition is offered": {used: first, use: nothing, past: discovery.History{Taken: true}, found: second,
			state: report.Available},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := family(t)
			other := one(t, nodes[c.used], ", partitions: true", unknown).Name
			c.use(t, nodes[c.used])
			v := one(t, nodes[c.found], ", partitions: true", only(other, c.past))
			if v.State != c.state || !strings.Contains(v.Message, c.says) || c.says == "disk-" &&
				!strings.Contains(v.Message, other) {
				t.Errorf("%+v, want %s, and %q in the message", v, c.state, c.says)
			}
		})
	}
}

// family returns a disk and two partitions of it.
func family(t *testing.T) []string {
	t.Helper()
	node := disk(t, 64*mib)
	return []string{node, testfs.Partition(t, node, 1, mib, 16*mib), testfs.Partition(t, node, 2, 20*mib, 16*mib)}
}

// TestPartedDisk checks that a disk is no volume beside its partitions.
func TestPartedDisk(t *testing.T) {
	nodes := family(t)
	found := find(t, fmt.Sprintf("devices: [{paths: [%s], partitions: true}]", strings.Join(nodes, ", ")), unknown)
	states := map[string]string{}
	for _, v := range found {
		states[v.Device] = v.State
	}
	if states[nodes[0]] != report.InUse || states[nodes[1]] == report.InUse && states[nodes[2]] == report.InUse {
		t.Errorf("the states are %v, want the disk in use and not its partitions: %+v", states, found)
	}
}

// TestMountedFamily checks that a mounted filesystem is no volume of its own if its device, the disk of that, or a
// partition of it is offered, or was and is not wiped.
func TestMountedFamily(t *testing.T) {
	const whole, first, second = 0, 1, 2
	taken, dirty := discovery.History{Taken: true}, discovery.History{Dirty: true}
	unproven := discovery.History{Unproven: true}
	for name, c := range map[string]struct {
		mounted, used int
		past          discovery.History // of what is used
		state         string
	}{
		"its device is offered":                {whole, whole, taken, report.InUse},
		"its device was offered and not wiped": {whole, whole, dirty, report.InUse},
		"its device is about to be offered":    {whole, whole, unproven, report.InUse},
		"its partition is offered":             {first, first, taken, report.InUse},
		"the disk of its partition is offered": {first, whole, taken, report.InUse},
		"a partition of its disk is offered":   {whole, first, taken, report.InUse},
		"another partition is offered":         {first, second, taken, report.Available},
		"nothing is offered":                   {whole, whole, discovery.History{}, report.Available},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := family(t)
			other := one(t, nodes[c.used], ", partitions: true", unknown).Name
			testfs.Format(t, "ext4", nodes[c.mounted])
			v := mounted(t, testfs.Mount(t, nodes[c.mounted]), only(other, c.past))
			if v.State != c.state || c.state == report.InUse && !strings.Contains(v.Message, other) {
				t.Errorf("%+v, want %s because of %s", v, c.state, other)
			}
		})
	}
}

// TestMountedOverALoop mounts an offered disk by a loop device that holds it.
func TestMountedOverALoop(t *testing.T) {
	node := disk(t, 64*mib)
	offered := one(t, node, "", unknown).Name
	testfs.Format(t, "ext4", node)
	at := testfs.Mount(t, testfs.Attach(t, node))
	v := mounted(t, at, only(offered, discovery.History{Taken: true}))
	if v.State != report.InUse || !strings.Contains(v.Message, offered) {
		t.Errorf("%+v, want it in use because of %s", v, offered)
	}
}

// TestUnmountedFamily checks that a disk is not offered while the filesystem on it is, or was and is not wiped: that is
// only not mounted at the moment.
func TestUnmountedFamily(t *testing.T) {
	const whole, first, second = 0, 1, 2
	taken, dirty := discovery.History{Taken: true}, discovery.History{Dirty: true}
	unproven := discovery.History{Unproven: true}
	withdrawn := discovery.History{Unproven: true, Withdrawn: true}
	for name, c := range map[string]struct {
		holds, found int
		past         discovery.History // of the filesystem
		own          discovery.History // of the device that is found
		state        string
	}{
		"the filesystem is offered":                  {holds: whole, past: taken, state: report.InUse},
		"the filesystem was offered, and not wiped":  {holds: whole, past: dirty, state: report.InUse},
		"the filesystem is about to be offered":      {holds: whole, past: unproven, state: report.InUse},
		"a partition's filesystem is offered":        {holds: first, past: taken, state: report.InUse},
		"the filesystem of the partition is offered": {holds: first, found: first, past: taken, state: report.InUse},
		"another partition's is offered":             {holds: second, found: first, past: taken, state: report.Available},
		"nothing is offered":                         {holds: whole, state: report.Available},
		"both were, and are withdrawn":               {holds: whole, past: withdrawn, own: withdrawn, state: report.Dirty},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := family(t)
			testfs.Format(t, "ext4", nodes[c.holds])
			var other string
			t.Run("mounted", func(t *testing.T) {
				other = mounted(t, testfs.Mount(t, nodes[c.holds]), unknown).Name
			})
			own := one(t, nodes[c.found], ", partitions: true", unknown).Name
			v := one(t, nodes[c.found], ", partitions: true, notBlank: true", func(name string) discovery.History {
				return map[string]discovery.History{other: c.past, own: c.own}[name]
			})
			if v.State != c.state || c.state == report.InUse && !strings.Contains(v.Message, other) {
				t.Errorf("%+v, want %s because of %s", v, c.state, other)
			}
		})
	}
}

// mounted returns the only volume at a mount point.
func mounted(t *testing.T, at string, remember discovery.Remember) report.Volume {
	t.Helper()
	found := find(t, fmt.Sprintf("mountPoints: [{paths: ['%s']}]", at), remember)
	if len(found) != 1 {
		t.Fatalf("%d volumes are found at %s, want 1: %+v", len(found), at, found)
	}
	return found[0]
}

// only is what is known if nothing is but the past of one volume.
func only(volume string, past discovery.History) discovery.Remember {
	return func(name string) discovery.History {
		if name == volume {
			return past
		}
		return discovery.History{}
	}
}
