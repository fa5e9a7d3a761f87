package mountoptions

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/pkg/failure"
)

// The options that users need are allowed.
func TestUsualOptionsAreAllowed(t *testing.T) {
	for fsType, options := range map[string][]string{
		"ext4": {"noatime", "nodiratime", "discard", "commit=30", "data=ordered", "prjquota", "errors=remount-ro", "nosuid",
			"nodev", "stripe=16", "nobarrier", "lazytime"},
		"xfs": {"noatime", "nouuid", "prjquota", "inode64", "logbsize=256k", "allocsize=1m", "largeio", "discard",
			`context="a:b:c:s0:c1,c2"`},
		"btrfs": {"noatime", "compress=zstd:3", "ssd", "discard=async", "space_cache=v2", "subvol=x"},
	} {
		if err := CheckFor(fsType, options); err != nil {
			t.Error(err)
		}
	}
}

// The guide lists all allowed options.
func TestGuideListsOptions(t *testing.T) {
	data, err := os.ReadFile("../../docs/guides/mount-options.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := strings.FieldsFunc(string(data), func(r rune) bool { return strings.ContainsRune(" \n`,|", r) })
	for _, fsType := range []string{"ext4", "xfs", "btrfs"} {
		for _, option := range Allowed(fsType) {
			if !slices.Contains(listed, option) {
				t.Errorf("docs/guides/mount-options.md lacks %s of %s", option, fsType)
			}
		}
	}
}

func TestForm(t *testing.T) {
	for _, good := range [][]string{
		nil, {"ro"}, {"noatime", "discard"}, {"data=journal"}, {"uid=1000"}, {"vers=4.1", "hard"}, {"defaults", "_netdev"},
		{`context="system_u:object_r:container_file_t:s0:c1,c2"`},
	} {
		if err := Check(good); err != nil {
			t.Errorf("Check(%q) = %v", good, err)
		}
	}
	for _, bad := range []string{
		"", "=x", "ro,rw", "a=b,c", "a\x00b", "a\nb", "bind", "rbind", "remount", "move", "loop",
		"loop=/dev/loop0", "offset=1",
		"x-systemd.automount", "X-mount.mkdir", "user", "user=root", "users", "owner", "shared", "rshared",
		"private", "source=/dev/sda",
		"helper=x", "context,bind", strings.Repeat("o", 256),
	} {
		if err := Check([]string{"ro", bad}); !failure.Is(err, failure.Invalid) {
			t.Errorf("%q: %v, want Invalid", bad, err)
		}
	}
}

// A class that cannot be mounted is refused before anything is created for it.
func TestMountable(t *testing.T) {
	for what, test := range map[string]struct {
		of         interface{ Check(string, []string) error }
		filesystem string
		options    []string
		says       string // empty if it can be mounted
	}{
		"device":                       {Device{}, "", []string{"noatime", "commit=5"}, ""},
		"device, xfs":                  {Device{}, "xfs", []string{"logbsize=32k"}, ""},
		"device, the option of xfs":    {Device{}, "", []string{"logbsize=32k"}, "ext4"},
		"device, foreign filesystem":   {Device{}, "ntfs", nil, `"ntfs" is not supported: use ext4, xfs, btrfs`},
		"device, path":                 {Device{}, "../x", nil, `"../x" is not supported`},
		"device, another device":       {Device{}, "xfs", []string{"logdev=/dev/sda"}, "logdev"},
		"directory":                    {Directory{}, "", []string{"ro", "nosuid", "defaults", "strictatime"}, ""},
		"directory, filesystem":        {Directory{}, "ext4", nil, `"ext4"`},
		"directory, filesystem option": {Directory{}, "", []string{"ro", "discard"}, "discard"},
		"directory, form":              {Directory{}, "", []string{"bind"}, "other mounts"},
	} {
		err := test.of.Check(test.filesystem, test.options)
		if (err != nil) != (test.says != "") ||
			err != nil && (!failure.Is(err, failure.Invalid) || !strings.Contains(err.Error(), test.says)) {
			t.Errorf("%s: %v, want one that says %q", what, err, test.says)
		}
	}
}
