package nfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/backendtest"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/standin"
)

const (
	// squashWord is the argument that makes the test's program the controller of TestSquashedRoot.
	squashWord = "squashed"
	nodeWord   = "squashed-node"
	nobody     = 65534
)

// squashed does a controller's work as a user other than root, as on a server with root_squash: it creates, copies and
// deletes a volume with files of others.
func squashed(servers string) int {
	instance, err := DefinitionOver(standin.Servers(servers)).Open(context.Background(), backends.Options{
		Driver: "nfs.test", DataDir: filepath.Join(servers, "data"), Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	e, ctx := askedOnce(instance), context.Background()
	spec := in("one", "ns/one", deleteData)
	spec.Parameters.(*Parameters).MountPermissions = "0777"
	v, err := e.Create(ctx, spec)
	if err == nil {
		err = os.WriteFile(filepath.Join(servers, testServer, testShare, "ns", "one", "file"), []byte("text"), 0o644)
	}
	if err == nil {
		_, err = e.CreateSnapshot(ctx, backends.SnapshotSpec{Name: "s", Volume: v.Handle})
	}
	if err == nil {
		_, err = e.Expand(ctx, v.Handle, backends.CapacityRange{RequiredBytes: 4 << 20})
	}
	if err == nil {
		err = os.Chmod(filepath.Join(servers, testServer, testShare, "ns", "one"), 0o500) // as a pod's root may
	}
	if err == nil {
		err = e.Delete(ctx, v.Handle)
	}
	if err == nil {
		err = closedMade(ctx, e, filepath.Join(servers, testServer, testShare))
	}
	if err == nil {
		err = backendtest.Close(ctx, instance)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// closedMade creates and deletes a volume, and a copy of it, to whose directories nobody may write.
func closedMade(ctx context.Context, e *controllerSide, root string) error {
	const mode = fs.FileMode(0o555)
	spec, clone := in("closed", "ns/closed", deleteData), in("clone", "ns/clone", deleteData)
	spec.Parameters.(*Parameters).MountPermissions = "0555"
	v, err := e.Create(ctx, spec)
	if err != nil {
		return err
	}
	copied, err := e.Clone(ctx, clone, v.Handle)
	if err != nil {
		return err
	}
	for _, name := range []string{"closed", "clone"} {
		info, err := os.Stat(filepath.Join(root, "ns", name))
		if err == nil && info.Mode().Perm() != mode {
			err = fmt.Errorf("the directory of %s has the mode %v, want %v", name, info.Mode(), mode)
		}
		if err != nil {
			return err
		}
	}
	notes, err := filepath.Glob(filepath.Join(root, share.HomeName, share.Staging, "*"+modeSuffix))
	if err == nil && len(notes) > 0 {
		err = fmt.Errorf("the notes %q are left", notes)
	}
	if err != nil {
		return err
	}
	return errors.Join(e.Delete(ctx, v.Handle), e.Delete(ctx, copied.Handle))
}

// squashedNode is a node whose root the server maps to nobody. The volume's handle is in a file.
func squashedNode(servers string) int {
	instance, err := DefinitionOver(standin.Servers(servers)).Open(context.Background(), backends.Options{
		Driver: "nfs.test", DataDir: filepath.Join(servers, "data"), NodeID: "n",
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	var handle []byte
	if err == nil {
		handle, err = os.ReadFile(filepath.Join(servers, "handle"))
	}
	if err == nil {
		_, err = instance.Node.Source(context.Background(), backends.Attachment{Handle: string(handle)})
	}
	if err == nil {
		if _, denied := os.ReadDir(filepath.Join(servers, testServer, testShare, ".stowage", "volumes")); denied == nil {
			err = errors.New("it can list the records")
		}
	}
	if err == nil {
		// Without the key, the same name would have another ID. Controllers that may read it may create the volume.
		_, denied := instance.Controller.Create(context.Background(), in("one", "ns/one", deleteData))
		if !backends.Is(denied, backends.Unavailable) || !strings.Contains(denied.Error(), "no_root_squash") {
			err = fmt.Errorf("as a controller it says %w, want that it may not read the key", denied)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// asNobody runs the test's program as a user other than root.
func asNobody(t *testing.T, servers standin.Servers, word string) {
	t.Helper()
	for dir := string(servers); dir != os.TempDir(); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	data := filepath.Join(string(servers), "data")
	program := filepath.Join(string(servers), "program")
	self, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(program, self, 0o755)
	}
	if err == nil {
		err = os.MkdirAll(data, 0o755)
	}
	if err == nil {
		err = os.Chown(data, nobody, nobody)
	}
	if err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), program, word, string(servers))
	child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody, Groups: []uint32{}}}
	if output, err := child.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", word, err, output)
	}
}

// A server may map the nodes' root to nobody but not the controller's: the nodes still find the volumes, but may not
// list them.
func TestSquashedNode(t *testing.T) {
	w := newWorld(t)
	spec := in("one", "ns/one", deleteData)
	spec.Parameters.(*Parameters).MountPermissions = "0770"
	v := w.make(spec)
	servers := w.mount.(standin.Servers)
	w.must(os.WriteFile(filepath.Join(string(servers), "handle"), []byte(v.Handle), 0o644))
	asNobody(t, servers, nodeWord)
}

func TestSquashedRoot(t *testing.T) {
	servers, root := serve(t)
	if err := os.Chown(root, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	asNobody(t, servers, squashWord)
	left, err := os.ReadDir(filepath.Join(root, "ns"))
	if err != nil || len(left) != 0 {
		t.Errorf("after the deletion there is %v, %v; want nothing", left, err)
	}
}
