package export

import (
	"testing"

	"golang.org/x/sys/unix"
)

// Two mounts are of one filesystem of a server, and a third is of another one.
func TestFilesystemsOfMounts(t *testing.T) {
	const list = "NV SERVER   PORT DEV          FSID                              FSC\n" +
		"v4 c0a80001  801 0:45         5ad1c4f6a1b2c3d4:9f0e1d2c3b4a5968 no \n" +
		"v3 c0a80001  801 0:46         5ad1c4f6a1b2c3d4:9f0e1d2c3b4a5968 no \n" +
		"v4 c0a80001  801 0:47         5ad1c4f6a1b2c3d4:1                no \n" +
		"v4 c0a80001  801 0:48         0:0                               no \n"
	one, other := listedAs(list, unix.Mkdev(0, 45)), listedAs(list, unix.Mkdev(0, 46))
	if one == "" || one != other {
		t.Errorf("two mounts of one filesystem are of %q and of %q", one, other)
	}
	if third := listedAs(list, unix.Mkdev(0, 47)); third == "" || third == one {
		t.Errorf("the mount of another filesystem is of %q, and the first of %q", third, one)
	}
	for what, minor := range map[string]uint32{"not listed": 4, "of a filesystem without a number": 48} {
		if none := listedAs(list, unix.Mkdev(0, minor)); none != "" {
			t.Errorf("what is %s is of %q", what, none)
		}
	}
}

// Two exports of one filesystem with separate quotas show different sizes, and share no room.
func TestFilesystemsOfQuotas(t *testing.T) {
	const list = "v4 c0a80001  801 0:45         5ad1c4f6a1b2c3d4:9f0e1d2c3b4a5968 no \n" +
		"v4 c0a80001  801 0:46         5ad1c4f6a1b2c3d4:9f0e1d2c3b4a5968 no \n"
	one, other := unix.Mkdev(0, 45), unix.Mkdev(0, 46)
	if a, b := filesystemIn(list, one, 1<<30), filesystemIn(list, other, 1<<30); a == "" || a != b {
		t.Errorf("two exports of one size are on %q and on %q", a, b)
	}
	if a, b := filesystemIn(list, one, 1<<30), filesystemIn(list, other, 2<<30); a == b {
		t.Errorf("two exports of different sizes are both on %q", a)
	}
	if none := filesystemIn(list, unix.Mkdev(0, 4), 1<<30); none != "" {
		t.Errorf("what is not listed is on %q", none)
	}
}
