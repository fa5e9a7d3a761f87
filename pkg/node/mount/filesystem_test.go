package mount

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/mountoptions"
	"github.com/stowage-csi/stowage/pkg/node/device"
	"github.com/stowage-csi/stowage/pkg/node/filesystem"
	"github.com/stowage-csi/stowage/tests/secrets"
	"github.com/stowage-csi/stowage/tests/stall"
)

func TestMount(t *testing.T) {
	dir := folder(t, "target")
	d := disk(t)
	fs := ext4(d)
	fs.Options = []string{"noatime", "nodev", "nosuid", "noexec", "nosymfollow", "defaults", "data=ordered", "nodiscard",
		"sync"}
	must(t, mountAt(t, fs, target(t, dir+"/target")))
	s := look(t, dir+"/target")
	if !s.Mounted || s.ReadOnly || s.Dev != d.Number() {
		t.Errorf("mounted: %+v", s)
	}
	var stat unix.Statfs_t
	must(t, unix.Statfs(dir+"/target", &stat))
	const want = unix.MS_NOATIME | unix.MS_NODEV | unix.MS_NOSUID | unix.MS_NOEXEC | unix.MS_SYNCHRONOUS
	if stat.Flags&want != want {
		t.Errorf("the flags are %#x, want %#x among them", stat.Flags, want)
	}
	wantKind(t, mountAt(t, fs, target(t, dir+"/target")), backends.Exists)
}

func TestMountReadOnly(t *testing.T) {
	for name, fs := range map[string]Filesystem{
		"field":      {ReadOnly: true},
		"option":     {Options: []string{"ro"}},
		"field wins": {ReadOnly: true, Options: []string{"rw"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t, "target")
			fs.Type, fs.Source = "ext4", disk(t).Path
			must(t, mountAt(t, fs, target(t, dir+"/target")))
			if s := look(t, dir+"/target"); !s.Mounted || !s.ReadOnly {
				t.Errorf("mounted: %+v", s)
			}
			if err := os.WriteFile(dir+"/target/x", nil, 0o600); !errors.Is(err, unix.EROFS) {
				t.Errorf("writing: %v", err)
			}
		})
	}
}

func TestMountRefuses(t *testing.T) {
	dir := folder(t, "target", "file")
	d := disk(t)
	blank := filepath.Join(t.TempDir(), "blank.img")
	must(t, os.WriteFile(blank, nil, 0o600), os.Truncate(blank, 1<<20))
	empty, err := device.Open(t.Context(), backends.Device{Path: blank, Image: true}, device.Options{})
	must(t, err)
	defer empty.Close()
	for name, test := range map[string]struct {
		fs    Filesystem
		place string
		want  backends.Kind
		words string
	}{
		"unknown option": {Filesystem{Type: "ext4", Source: d.Path, Options: []string{"no-such-option"}}, "target",
			backends.Invalid, "no-such-option"},
		"bad value": {Filesystem{Type: "ext4", Source: d.Path, Options: []string{"commit=many"}}, "target",
			backends.Invalid, "commit=many"},
		"forbidden option": {Filesystem{Type: "ext4", Source: d.Path, Options: []string{"bind"}}, "target", backends.Invalid,
			"bind"},
		"unknown type": {Filesystem{Type: "no-such-type", Source: d.Path}, "target", backends.Unsupported,
			"no-such-type"},
		"missing source":    {Filesystem{Type: "ext4", Source: "/dev/no-such"}, "target", backends.NotFound, "/dev/no-such"},
		"source is no disk": {Filesystem{Type: "ext4", Source: dir}, "target", backends.Unknown, dir},
		"nothing on it":     {Filesystem{Type: "ext4", Source: empty.Path}, "target", backends.Unknown, empty.Path},
		"another type":      {Filesystem{Type: "xfs", Source: d.Path}, "target", backends.Unknown, d.Path},
		"another device": {Filesystem{Type: "ext4", Source: d.Path, Dev: unix.Mkdev(7, 4000)}, "target",
			backends.Unavailable, "7:4000"},
		"missing target":   {Filesystem{Type: "ext4", Source: d.Path}, "none", backends.NotFound, "none"},
		"target is a file": {Filesystem{Type: "ext4", Source: d.Path}, "file", backends.Invalid, "file"},
	} {
		t.Run(name, func(t *testing.T) {
			err := mountAt(t, test.fs, target(t, dir+"/"+test.place))
			wantKind(t, err, test.want)
			if err != nil && !strings.Contains(err.Error(), test.words) {
				t.Errorf("the error does not name %q: %v", test.words, err)
			}
			t.Log(err)
		})
	}
	if look(t, dir+"/target").Mounted {
		t.Error("a refused mount is mounted")
	}
}

// The error contains the kernel's own words.
func TestMountRepeatsKernel(t *testing.T) {
	dir := folder(t, "target")
	err := mountAt(t, Filesystem{Type: "ext4", Source: disk(t).Path, Options: []string{"commit=many"}},
		target(t, dir+"/target"))
	wantKind(t, err, backends.Invalid)
	if err == nil || !strings.Contains(err.Error(), "Bad value") {
		t.Errorf("the kernel's words are not in the error: %v", err)
	}
}

// The kernel repeats values in its own words, and a secret may be joined to one.
func TestMountHidesSecrets(t *testing.T) {
	dir := folder(t, "target")
	fs := Filesystem{Type: "proc", Source: "proc", Options: []string{"hidepid=some password=" + secrets.Canary},
		Export: true}
	err := mountAt(t, fs, target(t, dir+"/target"))
	wantKind(t, err, backends.Invalid)
	if err == nil || !strings.Contains(err.Error(), "the kernel says: proc: unknown value of hidepid") {
		t.Fatalf("got %v, want the kernel's own words", err)
	}
	if strings.Contains(err.Error(), secrets.Canary) {
		t.Errorf("the failure shows the secret: %v", err)
	}
}

func TestMountAfterContext(t *testing.T) {
	dir := folder(t, "target")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Mount(ctx, Filesystem{Type: "tmpfs", Source: "tmpfs"}, target(t, dir+"/target"))
	wantKind(t, err, backends.Unavailable)
	if look(t, dir+"/target").Mounted {
		t.Error("mounted after the context's end")
	}
}

func TestMountOtherTypes(t *testing.T) {
	for fsType, size := range map[string]int64{"xfs": 300 << 20, "btrfs": 300 << 20} {
		t.Run(fsType, func(t *testing.T) {
			if err := filesystem.Missing(fsType); err != nil {
				t.Skipf("SKIPPED: %v", err)
			}
			stall.Apart(t)
			dir := folder(t, "target")
			path := filepath.Join(t.TempDir(), "volume.img")
			must(t, os.WriteFile(path, nil, 0o600), os.Truncate(path, size))
			d, err := device.Open(t.Context(), backends.Device{Path: path, Image: true}, device.Options{})
			must(t, err)
			format(t, d, fsType)
			must(t, mountAt(t, Filesystem{Type: fsType, Source: d.Path, Options: []string{"noatime"}}, target(t, dir+"/target")))
			must(t, d.Close())
			table, err := ReadTable()
			must(t, err)
			if entry, ok, err := table.At(dir + "/target"); err != nil || !ok || entry.Device() != d.Number() {
				t.Errorf("the table has %v (%v), want device %d:%d", entry, err, d.Major, d.Minor)
			}
			if got := table.Where(table.OnDevice(d.Number())); !slices.Equal(got, []string{dir + "/target"}) {
				t.Errorf("the filesystem on %s shows at %v", d.Path, got)
			}
			must(t, os.WriteFile(dir+"/target/data", nil, 0o600), Unmount(t.Context(), dir+"/target"))
			// The loop device goes with the mount, once no process inspects it.
			for end := time.Now().Add(2 * time.Minute); ; {
				loops, err := device.FindLoops(t.Context(), path)
				must(t, err)
				if len(loops) == 0 {
					break
				}
				if time.Now().After(end) {
					t.Fatalf("attached still: %v", loops)
				}
			}
		})
	}
}

// The options of a mount itself are those that the kernel takes for it.
func TestAttributes(t *testing.T) {
	for _, option := range mountoptions.Attributes() {
		if _, _, ok := attribute(option); !ok {
			t.Errorf("%s belongs to a mount, and means nothing to the kernel", option)
		}
	}
}

// hostileOptions returns options that open other devices, read something else as the volume's superblock, or let the
// volume's contents stop the node.
func hostileOptions() map[string][]string {
	return map[string][]string{
		"ext4": {"journal_dev=0x700", "journal_path=/dev/loop0", "sb=32768", "errors=panic", "errors=continue", "errors",
			"abort", "debug", "noblock_validity", "jqfmt=vfsv1", "usrjquota=x", "test_dummy_encryption"},
		"xfs":   {"logdev=/dev/loop0", "rtdev=/dev/loop0"},
		"btrfs": {"device=/dev/loop0", "degraded", "fatal_errors=panic", "check_int", "fragment=all"},
		"tmpfs": {"size=1g"},
	}
}

// Options from a PersistentVolume's author do not reach the kernel unless they are on the list of the filesystem.
func TestHostileOptionsAreRefused(t *testing.T) {
	for fsType, options := range hostileOptions() {
		for _, option := range options {
			dir := folder(t, "target")
			err := mountAt(t, Filesystem{Type: fsType, Source: "/dev/null", Options: []string{"noatime", option}},
				target(t, dir+"/target"))
			wantKind(t, err, backends.Invalid)
			if err == nil || !strings.Contains(err.Error(), `"`+option+`" is not allowed`) ||
				!strings.Contains(err.Error(), "noatime") {
				t.Errorf("%s %s: the error does not say what is allowed: %v", fsType, option, err)
			}
		}
	}
}

func TestSecurityLabelLosesItsQuotes(t *testing.T) {
	if got := valueOf(`context="a:b:s0:c1,c2"`, `"a:b:s0:c1,c2"`); got != "a:b:s0:c1,c2" {
		t.Errorf("the kernel is given %q", got)
	}
	if got := valueOf(`subvol="x"`, `"x"`); got != `"x"` {
		t.Errorf("the kernel is given %q", got)
	}
}
