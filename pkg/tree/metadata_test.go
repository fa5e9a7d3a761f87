package tree

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/tests/testfs"
)

// On xfs and NFS a file may have hundreds of megabytes of attributes. A copy keeps one of users in memory at a time.
func TestAttributesTakeNoMemory(t *testing.T) {
	const count, size, most = 500, 64 << 10, 4 << 20
	dir := testfs.New(t, "xfs", 512)
	source := filepath.Join(dir, "source")
	must(t, os.Mkdir(source, 0o700))
	for i := range count {
		must(t, unix.Setxattr(source, fmt.Sprintf("user.%d", i), fmt.Appendf(make([]byte, size-8), "%08d", i), 0))
	}
	parent, err := os.Open(dir)
	must(t, err)
	defer parent.Close()
	n, err := openNode(parent, "source")
	must(t, err)
	defer n.close()
	before := heap()
	meta, err := metadataOf(n)
	must(t, err)
	if held := heap() - before; held > most {
		t.Errorf("the attributes of one file take %d bytes of memory, want %d at most", held, most)
	}
	runtime.KeepAlive(meta)
	must(t, Copy(t.Context(), filepath.Join(dir, "copy"), source))
	if xattrs(t, filepath.Join(dir, "copy")) != xattrs(t, source) {
		t.Error("the copy has other attributes")
	}
}

// heap returns how many bytes of memory are in use.
func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
