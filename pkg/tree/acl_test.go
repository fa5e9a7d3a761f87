package tree

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A copy is created in a directory that gives new entries a list of its own. The copy has the lists of its original,
// and none if the original has none.
func TestCopiesHaveNoOtherLists(t *testing.T) {
	src, into := richTree(t), t.TempDir()
	must(t, unix.Setxattr(into, "system.posix_acl_default", acl(103), 0))
	want := describe(t, src)
	dst := filepath.Join(into, "copy")
	must(t, Copy(t.Context(), dst, src))
	if have := describe(t, dst); have != want {
		t.Errorf("the copy is\n%s\nwant\n%s", have, want)
	}
	dst = filepath.Join(into, "replica")
	must(t, replicate(t.Context(), t, dst, src, Replication{Workers: 4, Lenient: true}))
	must(t, Remove(t.Context(), dst+".links"))
	if have := describe(t, dst); have != want {
		t.Errorf("the replica is\n%s\nwant\n%s", have, want)
	}
}

// A copy fails if it cannot have its access control list, even if it is lenient.
func TestNoCopyWithoutItsList(t *testing.T) {
	for name, list := range map[string]string{"system.posix_acl_access": "no list", nfs4List: "A::OWNER@:rw"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
			parent, err := os.Open(dir)
			must(t, err)
			defer parent.Close()
			meta := metadata{lenient: true, stat: unix.Stat_t{Mode: unix.S_IFREG | 0o664},
				xattrs: map[string][]byte{name: []byte(list)}}
			if err := finish(parent, "file", &meta); !errors.Is(err, ErrAccess) {
				t.Errorf("got %v, want %v", err, ErrAccess)
			}
		})
	}
}
