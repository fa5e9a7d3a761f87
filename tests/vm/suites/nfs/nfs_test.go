package nfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/tests/vm/nfsd"
)

// Each version is served over the loopback address, and the client uses the requested version.
func TestVersions(t *testing.T) {
	server := start(t, nfsd.Config{})
	export := nfsd.Export{Path: folder(t)}
	must(t, server.Export(t.Context(), export))
	for _, version := range []string{"3", "4.1", "4.2"} {
		t.Run(version, func(t *testing.T) {
			target := mount(t, export.Path, "vers="+version+soft+map[bool]string{true: ",nolock"}[version == "3"])
			name := "by-" + version
			must(t, write(filepath.Join(target, name), "written by "+version))
			must(t, holds(filepath.Join(export.Path, name), "written by "+version))
			must(t, write(filepath.Join(export.Path, "back"), "from the server, for "+version))
			must(t, holds(filepath.Join(target, "back"), "from the server, for "+version))
			var stat unix.Statfs_t
			must(t, unix.Statfs(target, &stat))
			if stat.Type != unix.NFS_SUPER_MAGIC {
				t.Errorf("the filesystem's type is %#x, want %#x", stat.Type, unix.NFS_SUPER_MAGIC)
			}
		})
	}
}

// A version that is not served is refused.
func TestOnlyWhatIsServed(t *testing.T) {
	server := start(t, nfsd.Config{Versions: []string{"4.2"}})
	export := nfsd.Export{Path: folder(t)}
	must(t, server.Export(t.Context(), export))
	must(t, write(filepath.Join(mount(t, export.Path, "vers=4.2"+soft), "file"), "4.2"))
	data := "vers=4.1,addr=127.0.0.1,clientaddr=127.0.0.1"
	err := within(t, func() error { return unix.Mount("127.0.0.1:"+export.Path, t.TempDir(), "nfs4", 0, data) })
	if !errors.Is(err, unix.EPROTONOSUPPORT) {
		t.Errorf("mounting by 4.1 gives %v, want EPROTONOSUPPORT", err)
	}
}

// A killed server refuses connections. After Resume it serves the existing mounts.
func TestKillAndResume(t *testing.T) {
	server := start(t, nfsd.Config{})
	export := nfsd.Export{Path: folder(t)}
	must(t, server.Export(t.Context(), export))
	target := mount(t, export.Path, "vers=4.2"+soft)
	file := filepath.Join(target, "file")
	must(t, write(file, "before"))
	must(t, server.Kill(t.Context()))
	if n, err := nfsd.Threads(); n != 0 || err != nil {
		t.Fatalf("after Kill %d threads serve (%v)", n, err)
	}
	err := within(t, func() error { return write(filepath.Join(target, "during"), "x") })
	if err == nil {
		t.Error("a dead server took a file")
	}
	t.Logf("a soft mount of a dead server says: %v", err)
	must(t, server.Resume(t.Context()))
	eventually(t, func() error { return write(file, "after") })
	must(t, holds(filepath.Join(export.Path, "file"), "after"))
}

// Blocked packets make a client give up. After Unblock it continues.
func TestBlock(t *testing.T) {
	server := start(t, nfsd.Config{})
	export := nfsd.Export{Path: folder(t)}
	must(t, server.Export(t.Context(), export))
	target := mount(t, export.Path, "vers=4.1"+soft)
	for _, how := range []nfsd.How{nfsd.Drop, nfsd.Reset} {
		t.Run(string(how), func(t *testing.T) {
			must(t, nfsd.Block(t.Context(), how))
			begun := time.Now()
			err := within(t, func() error { return write(filepath.Join(target, "blocked"), "x") })
			must(t, nfsd.Unblock(t.Context()))
			if err == nil {
				t.Error("a file was written through the block")
			}
			t.Logf("after %v: %v", time.Since(begun).Round(time.Millisecond), err)
			eventually(t, func() error { return write(filepath.Join(target, "unblocked"), "x") })
		})
	}
}

// Export options work as in exports(5), and can be changed while a client has the export mounted.
func TestOptions(t *testing.T) {
	server := start(t, nfsd.Config{})
	export := nfsd.Export{Path: folder(t)}
	must(t, server.Export(t.Context(), export))
	target := mount(t, export.Path, "vers=4.2"+soft)
	owner := func(name string) uint32 {
		t.Helper()
		var stat unix.Stat_t
		must(t, write(filepath.Join(target, name), name))
		must(t, unix.Stat(filepath.Join(export.Path, name), &stat))
		return stat.Uid
	}
	if uid := owner("squashed"); uid != 65534 {
		t.Errorf("with root_squash root's file belongs to %d, want 65534", uid)
	}
	export.Options = []string{"no_root_squash"}
	must(t, server.Export(t.Context(), export))
	if uid := owner("root's"); uid != 0 {
		t.Errorf("with no_root_squash root's file belongs to %d", uid)
	}
	export.Options = []string{"ro"}
	must(t, server.Export(t.Context(), export))
	if err := write(filepath.Join(target, "refused"), "x"); !errors.Is(err, unix.EROFS) {
		t.Errorf("writing to a read-only export gives %v, want EROFS", err)
	}
}

// An export that was removed or replaced makes handles stale.
func TestStale(t *testing.T) {
	server := start(t, nfsd.Config{})
	path := folder(t)
	export := nfsd.Export{Path: path, FSID: "71"}
	must(t, server.Export(t.Context(), export))
	target := mount(t, path, "vers=4.2"+soft+",noac")
	must(t, write(filepath.Join(target, "file"), "x"))
	look := func() error {
		_, err := os.ReadDir(target)
		return err
	}
	for _, c := range []struct {
		name   string
		change func() error
	}{
		{"gone", func() error { return server.Unexport(t.Context(), export) }},
		{"another thing", func() error {
			return server.Export(t.Context(), nfsd.Export{Path: path, FSID: "72"})
		}},
	} {
		must(t, c.change())
		if err := within(t, look); !errors.Is(err, unix.ESTALE) {
			t.Errorf("%s: reading gives %v, want ESTALE", c.name, err)
		}
	}
	must(t, server.Export(t.Context(), export))
	must(t, within(t, look))
}

// A full filesystem reports this, also to root, and is usable again once there is space.
func TestFull(t *testing.T) {
	must(t, nfsd.Clear(t.Context()))
	small, err := nfsd.NewFilesystem(t.Context(), folder(t), "ext4", 32<<20)
	must(t, err)
	// It is closed after the server, which would keep it in use for a while.
	t.Cleanup(func() {
		if err := small.Close(); err != nil {
			t.Error(err)
		}
	})
	server := start(t, nfsd.Config{})
	must(t, server.Export(t.Context(), nfsd.Export{Path: small.Path, Options: []string{"no_root_squash"}}))
	target := mount(t, small.Path, "vers=4.2"+soft)
	must(t, small.Fill())
	if err := write(filepath.Join(target, "file"), "does not fit"); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("writing to a full filesystem gives %v, want ENOSPC", err)
	}
	must(t, small.Empty())
	must(t, write(filepath.Join(target, "file"), "fits"))
}

// A proxy is slow or silent, or cuts the connection. The client recovers each time.
func TestProxy(t *testing.T) {
	server := start(t, nfsd.Config{})
	export := nfsd.Export{Path: folder(t)}
	must(t, server.Export(t.Context(), export))
	proxy, err := nfsd.NewProxy(t.Context())
	must(t, err)
	t.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	// A hard mount waits for slow answers.
	target := mount(t, export.Path, fmt.Sprintf("vers=4.2,hard,port=%d,retry=0", proxy.Port()))
	took := func(name string) time.Duration {
		t.Helper()
		begun := time.Now()
		must(t, within(t, func() error { return write(filepath.Join(target, name), name) }))
		return time.Since(begun)
	}
	took("fast")
	const delay = 500 * time.Millisecond
	proxy.Delay(delay)
	if d := took("slow"); d < 2*delay {
		t.Errorf("a file took %v with a delay of %v each way", d, delay)
	}
	proxy.Delay(0)
	proxy.Cut()
	took("reconnected")
	proxy.Pause()
	ended := make(chan error, 1)
	go func() { ended <- write(filepath.Join(target, "paused"), "paused") }()
	select {
	case err := <-ended:
		t.Errorf("a file was written through a paused proxy (%v)", err)
	// Stimulus: the proxy passes nothing on until it continues.
	case <-time.After(2 * time.Second):
		proxy.Continue()
		must(t, <-ended)
	}
}
