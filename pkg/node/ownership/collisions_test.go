package ownership

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/tests/testfs"
)

// alike are ends of names that have the same legacy hash of an ext4 after 248 times the letter x. All such names of a
// directory are at one position.
const alike = "aaaaaaa adGYg7Z amo9i8A amKfaLh aoVA4HQ at9WB5R auNrlbT auVCnnH axOKCFZ a0Aau1m a4jkJ5j a59Qt6e " +
	"a6lan9R a9nDYhr a9Q27DY aAwRuct aAXKWlB aBQa6C5 aCrvGz6 aD5z0YX aFGU8gC aLRHD7v aMIYQ6p aNluDHg aOT6ISH " +
	"aOYsslT aPCVvT8 aQUbBwz aV9O3f1 aWIp0LG aYDKNZg aZVrelx bcUbEtF bddDzwA bdQOTjm bdWDM9l bmMZBp4 bqDRAfE " +
	"brHGYaJ bvdC8OI"

// legacyExt4 returns the root of an ext4 that hashes names as the tenant of a volume can choose.
func legacyExt4(t *testing.T) string {
	t.Helper()
	image := filepath.Join(t.TempDir(), "image")
	must(t, os.WriteFile(image, nil, 0o600))
	must(t, os.Truncate(image, 64<<20))
	node := testfs.Attach(t, image)
	testfs.Format(t, "ext4", node)
	testfs.Run(t, "tune2fs", "-E", "hash_alg=legacy", node)
	return testfs.Mount(t, node)
}

// TestDirectoriesAtOnePosition checks that a walk ends although it loses its place among directories at one position of
// their parent each time that it comes back from one. Files there do not matter.
func TestDirectoriesAtOnePosition(t *testing.T) {
	root, names := legacyExt4(t), strings.Fields(alike)
	for _, c := range []struct {
		directories, files int
		refused            bool
	}{{20, 0, false}, {20, 20, false}, {0, 40, false}, {40, 0, true}} {
		t.Run(fmt.Sprintf("%d directories and %d files", c.directories, c.files), func(t *testing.T) {
			above := filepath.Join(root, fmt.Sprintf("%d-%d", c.directories, c.files))
			top := filepath.Join(above, "d") // The walk keeps only the directory above open.
			must(t, os.MkdirAll(top, 0o700))
			for i, end := range names[:c.directories+c.files] {
				path := filepath.Join(top, strings.Repeat("x", 248)+end)
				if i < c.directories {
					must(t, os.MkdirAll(filepath.Join(path, "below"), 0o700))
				} else {
					must(t, file(path))
				}
			}
			wantOnePosition(t, top)
			dir, err := os.Open(above)
			must(t, err)
			w := &walker{want: wanted{gid: group}}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			err = w.walkDeep(ctx, hold(dir, true), 0)
			if c.refused {
				if !backends.Is(err, backends.Invalid) || !strings.Contains(err.Error(), "one position") ||
					!strings.Contains(err.Error(), "unmounted") { // tune2fs and e2fsck need that
					t.Errorf("the walk ends with %v, want Invalid with the way out", err)
				}
				return
			}
			must(t, err)
			if result := w.result(); result.Changed != int64(1+2*c.directories+c.files) {
				t.Errorf("%+v, want %d changed", result, 1+2*c.directories+c.files)
			}
		})
	}
}

// wantOnePosition checks that the first part of a directory does not hold all names at its position.
func wantOnePosition(t *testing.T, path string) {
	t.Helper()
	dir, err := os.Open(path)
	must(t, err)
	defer dir.Close()
	var positions [2]int64
	for i := range positions {
		if _, err := unix.ReadDirent(int(dir.Fd()), make([]byte, partBytes)); err != nil {
			t.Fatal(err)
		}
		if positions[i], err = unix.Seek(int(dir.Fd()), 0, 1); err != nil {
			t.Fatal(err)
		}
	}
	if positions[0] != positions[1] {
		t.Errorf("the positions are %d: these names have different hashes", positions)
	}
}
