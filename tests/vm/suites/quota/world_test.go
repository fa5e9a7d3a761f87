package quota

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/backendtest"
	"github.com/stowage-csi/stowage/pkg/backends/local"
	"github.com/stowage-csi/stowage/tests/testfs"
)

const mib = 1 << 20

// world is a pool of directories on its own filesystem, and the backend that serves it.
type world struct {
	*testing.T
	fsType, image, mounted, data string
	instance                     *backends.Instance
	f                            backends.Features
}

func newWorld(t *testing.T, fsType string) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{T: t, fsType: fsType, image: filepath.Join(dir, "image"), mounted: filepath.Join(dir, "mounted"),
		data: filepath.Join(dir, "data")}
	w.must(os.WriteFile(w.image, nil, 0o600))
	w.must(os.Truncate(w.image, 320*mib)) // mkfs.xfs requires 300
	format := map[string][]string{"xfs": {"mkfs.xfs", "-q", w.image},
		"ext4": {"mkfs.ext4", "-q", "-O", "project,quota", w.image}}[fsType]
	testfs.Run(t, format[0], format[1:]...)
	w.must(os.Mkdir(w.mounted, 0o700))
	t.Cleanup(w.down)
	return w
}

// up mounts the filesystem and opens the backend.
func (w *world) up(options string) {
	w.Helper()
	testfs.Run(w, "mount", "-t", w.fsType, "-o", "loop,"+options, w.image, w.mounted)
	definition := local.Definition()
	instance, err := definition.Open(w.Context(), backends.Options{
		Driver: "local.csi.stowage.dev", DataDir: w.data, NodeID: "n", Log: slog.New(slog.NewTextHandler(w.Output(), nil)),
		Config: &local.Config{Pools: []local.PoolConfig{{Name: "d", Type: "directory",
			Path: filepath.Join(w.mounted, "pool")}}},
	})
	w.must(err)
	w.instance, w.f = instance, backends.Resolve(instance.Controller, instance.Node)
}

// down reverts up.
func (w *world) down() {
	w.Helper()
	if w.instance == nil {
		return
	}
	w.must(backendtest.Close(w.Context(), w.instance))
	w.instance = nil
	w.must(unix.Unmount(w.mounted, 0))
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func spec(name string, size int64) backends.Spec {
	return backends.Spec{
		Name: name, Capacity: backends.CapacityRange{RequiredBytes: size},
		Access: backends.Access{Types: []backends.AccessType{backends.Mount},
			Modes: []backends.AccessMode{backends.SingleNodeWriter}},
		Parameters: &local.Parameters{Pool: "d", Allocation: "sparse", OnDelete: "delete", SourceInUse: "refuse"},
	}
}

// create creates a volume and returns its handle.
func (w *world) create(name string, size int64) string {
	w.Helper()
	made, err := w.instance.Controller.Create(w.Context(), spec(name, size))
	w.must(err)
	return made.Handle
}

// path returns the path of a volume's directory.
func (w *world) path(handle string) string {
	w.Helper()
	source, err := w.instance.Node.Source(w.Context(), backends.Attachment{Handle: handle, Type: backends.Mount})
	w.must(err)
	w.must(w.f.Release.Release(w.Context(), handle))
	return source.(backends.Directory).Path
}

// write appends to a file of a volume until there is no space left, or most bytes are written, and returns the number
// of bytes.
func (w *world) write(handle string, most int64) (written int64) {
	w.Helper()
	path := w.path(handle)
	w.inContainer(func() { written = w.fill(path, most) })
	return written
}

// inContainer runs a function with the capabilities of a pod.
func (w *world) inContainer(work func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // It ends with the goroutine.
		if err := asInContainer(); err != nil {
			w.Error(err)
			return
		}
		work()
	}()
	<-done
}

// empty creates empty files in a volume until its limit, and returns their number.
func (w *world) empty(handle string) (made int) {
	w.Helper()
	path := w.path(handle)
	w.inContainer(func() {
		for ; made < 1<<17; made++ {
			err := os.WriteFile(filepath.Join(path, fmt.Sprint("empty", made)), nil, 0o600)
			if errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.ENOSPC) { // xfs reports ENOSPC.
				return
			}
			if err != nil {
				w.Error(err)
				return
			}
		}
	})
	return made
}

// unlimitFiles turns a volume into one from before the limit of files: only its bytes are limited.
func (w *world) unlimitFiles(project uint32, bytes uint64) {
	w.Helper()
	const setQuota, ofProject, limits = 0x800008, 2, 1 | 4 // of bytes and of files
	var wanted [72]byte                                    // struct if_dqblk
	binary.NativeEndian.PutUint64(wanted[:], bytes/1024)
	binary.NativeEndian.PutUint32(wanted[64:], limits)
	pool := w.pool()
	_, _, failed := unix.Syscall6(unix.SYS_QUOTACTL_FD, pool.Fd(), setQuota<<8|ofProject, uintptr(project),
		uintptr(unsafe.Pointer(&wanted)), 0, 0)
	w.must(pool.Close())
	if failed != 0 {
		w.Fatal(failed)
	}
}

// asInContainer drops CAP_SYS_RESOURCE of the thread: ext4 does not limit processes that have it, and containers do
// not.
func asInContainer() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return err
	}
	data[0].Effective &^= 1 << unix.CAP_SYS_RESOURCE
	return unix.Capset(&header, &data[0])
}

func (w *world) fill(path string, most int64) (written int64) {
	file, err := os.OpenFile(filepath.Join(path, "file"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		w.Error(err)
		return 0
	}
	defer file.Close()
	for piece := make([]byte, 64<<10); written < most; {
		n, err := file.Write(piece)
		written += int64(n)
		if errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.ENOSPC) {
			break
		}
		if err != nil {
			w.Error(err)
			break
		}
	}
	if err := file.Sync(); err != nil {
		w.Error(err)
	}
	return written
}

// wantFull checks that a volume takes approximately the given number of bytes more.
func (w *world) wantFull(handle string, about int64) {
	w.Helper()
	if got := w.write(handle, 10*about+16*mib); got > about || got < about*7/8 {
		w.Errorf("%s took %d bytes, want nearly %d", handle, got, about)
	}
}
