package powerloss

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// filesystem is a type of filesystem for the pools.
type filesystem struct {
	name    string
	sizeMiB int64    // of the drive
	mkfs    []string // arguments for mkfs: without background work, which would only add irrelevant writes
	options string   // for mount(2); its own writes are as rare as possible
	alone   bool     // two drives with the same filesystem cannot be mounted at the same time
	sector  int64    // the size of the drive's atomic writes in bytes
	// superblocks are the pages of its superblocks. It writes them in place although they have several sectors; this test
	// does not tear them. See doc.go for the reasons.
	superblocks []int64
}

func filesystems() []filesystem {
	return []filesystem{
		{
			name: "ext4", sizeMiB: 128, options: "errors=remount-ro,commit=300", sector: 512, superblocks: []int64{0},
			mkfs: []string{"-q", "-F", "-b", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard"},
		},
		{
			name: "xfs", sizeMiB: 320, options: "nouuid", sector: 4096, // See doc.go.
			mkfs: []string{"-q", "-f", "-K", "-m", "reflink=1", "-s", "size=4096"},
		},
		{
			name: "btrfs", sizeMiB: 256, options: "nodiscard,commit=300", alone: true, sector: 512,
			superblocks: []int64{64 << 10 / pageSize, 64 * mib / pageSize},
			mkfs:        []string{"-q", "-f", "-K"},
		},
	}
}

// tears reports whether the write may be partial.
func (f filesystem) tears(e entry) bool {
	return !slices.ContainsFunc(f.superblocks, func(n int64) bool {
		return e.offset < (n+1)*pageSize && n*pageSize < e.offset+e.length
	})
}

// format creates the filesystem, and returns the drive's content.
func (f filesystem) format(t *testing.T) image {
	t.Helper()
	path := filepath.Join(t.TempDir(), "new.img")
	must(t, os.WriteFile(path, nil, 0o600))
	must(t, os.Truncate(path, f.sizeMiB*mib))
	output, err := exec.CommandContext(t.Context(), "mkfs."+f.name, append(f.mkfs, path)...).CombinedOutput()
	if err != nil {
		t.Fatalf("mkfs.%s: %v\n%s", f.name, err, output)
	}
	m, err := loadImage(path)
	must(t, err)
	return m
}

// loadImage reads a file without its holes.
func loadImage(path string) (image, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	m := make(image, info.Size()/pageSize)
	for offset := int64(0); ; {
		if offset, err = unix.Seek(int(file.Fd()), offset, unix.SEEK_DATA); errors.Is(err, unix.ENXIO) {
			return m, nil
		} else if err != nil {
			return nil, err
		}
		p := new(page)
		if _, err := file.ReadAt(p[:], offset/pageSize*pageSize); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		m[offset/pageSize] = p
		offset = (offset/pageSize + 1) * pageSize
	}
}
