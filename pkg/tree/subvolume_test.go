package tree

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/tests/testfs"
)

// Any pod may create subvolumes and read-only snapshots of them in its directory on a btrfs. They are removed with it.
func TestRemoveSubvolumes(t *testing.T) {
	const chain = 200 // more than flattenDepth
	create := func(t *testing.T, path string) { testfs.Run(t, "btrfs", "subvolume", "create", path) }
	deep := strings.Repeat("d/", 2*flattenDepth)
	for what, plant := range map[string]func(t *testing.T, volume string){
		"read-only snapshot": func(t *testing.T, volume string) {
			create(t, volume+"/a")
			create(t, volume+"/a/nested")
			must(t, os.WriteFile(volume+"/a/file", nil, 0o600))
			testfs.Run(t, "btrfs", "subvolume", "snapshot", "-r", volume+"/a", volume+"/b")
		},
		"deep directories in it": func(t *testing.T, volume string) {
			create(t, volume+"/a")
			must(t, os.MkdirAll(volume+"/a/"+deep, 0o700))
		},
		"deep in directories": func(t *testing.T, volume string) {
			must(t, os.MkdirAll(volume+"/"+deep, 0o700))
			create(t, volume+"/"+deep+"a")
			must(t, os.MkdirAll(volume+"/"+deep+"a/"+deep, 0o700))
			create(t, volume+"/"+deep+"a/"+deep+"b")
			must(t, os.MkdirAll(volume+"/"+deep+"a/"+deep+"b/"+deep, 0o700))
			testfs.Run(t, "btrfs", "property", "set", volume+"/"+deep+"a", "ro", "true")
		},
		// The snapshot has an empty directory in place of the nested subvolume, which can be removed, but not moved.
		"a nested one deep in a snapshot": func(t *testing.T, volume string) {
			create(t, volume+"/a")
			bottom := "/" + strings.Repeat("d/", flattenDepth)
			must(t, os.MkdirAll(volume+"/a"+bottom, 0o700))
			create(t, volume+"/a"+bottom+"nested")
			testfs.Run(t, "btrfs", "subvolume", "snapshot", "-r", volume+"/a", volume+"/b")
		},
		"a chain of read-only ones": func(t *testing.T, volume string) {
			for i := range chain {
				create(t, volume+strings.Repeat("/a", i+1))
			}
			for i := range chain {
				testfs.Run(t, "btrfs", "property", "set", volume+strings.Repeat("/a", chain-i), "ro", "true")
			}
		},
		"many in one": func(t *testing.T, volume string) {
			create(t, volume+"/a")
			for i := range chain {
				create(t, fmt.Sprintf("%s/a/%d", volume, i))
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			dir := testfs.New(t, "btrfs", 256)
			volume := filepath.Join(dir, "volume")
			must(t, os.Mkdir(volume, 0o700))
			plant(t, volume)
			must(t, Remove(t.Context(), volume))
			isEmpty(t, dir)
		})
	}
}
