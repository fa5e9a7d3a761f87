package nfs

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/standin"
)

const ownerWord = "squashed-owner"

// squashedOwner is a controller that a server maps to nobody. It copies a file that it may read, but whose owner it may
// not set.
func squashedOwner(servers string) int {
	instance, err := DefinitionOver(standin.Servers(servers)).Open(context.Background(), backends.Options{
		Driver: "nfs.test", DataDir: filepath.Join(servers, "data"), Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err == nil {
		err = ownerKept(askedOnce(instance), servers)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func ownerKept(e *controllerSide, servers string) error {
	handle, err := os.ReadFile(filepath.Join(servers, "handle"))
	if err != nil {
		return err
	}
	ctx := context.Background()
	_, snapshot := e.CreateSnapshot(ctx, backends.SnapshotSpec{Name: "s", Volume: string(handle)})
	if backends.Is(snapshot, backends.Busy) { // Another controller was called before.
		_, snapshot = e.CreateSnapshot(ctx, backends.SnapshotSpec{Name: "s", Volume: string(handle)})
	}
	_, clone := e.Clone(ctx, in("two", "ns/two", deleteData), string(handle))
	if backends.Is(clone, backends.Busy) { // It was also called for volumes before.
		_, clone = e.Clone(ctx, in("two", "ns/two", deleteData), string(handle))
	}
	for _, err := range []error{snapshot, clone} {
		if !backends.Is(err, backends.Denied) {
			return fmt.Errorf("the copy of another user's file gives %v, want that it is denied", err) //nolint:errorlint // It may be nil.
		}
		for _, text := range []string{`"file"`, "1000:1000", "no_root_squash"} {
			if !strings.Contains(err.Error(), text) {
				return fmt.Errorf("this does not mention %s: %w", text, err)
			}
		}
	}
	if _, err := e.FindSnapshot(ctx,
		backends.SnapshotSpec{Name: "s", Volume: string(handle)}); !backends.Is(err, backends.NotFound) {
		return fmt.Errorf("after that the snapshot is there (%v)", err) //nolint:errorlint // It may be nil.
	}
	return nil
}

// The server does not let the controller's root change owners: a snapshot whose files would have another owner is never
// ready.
func TestSquashedOwner(t *testing.T) {
	w := newWorld(t)
	v := w.make(in("one", "ns/one", deleteData))
	w.write("text", "ns", "one", "file")
	w.must(filepath.WalkDir(w.root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, nobody, nobody)
	}))
	w.must(os.Chown(w.path("ns", "one", "file"), 1000, 1000))
	servers := w.mount.(standin.Servers)
	w.must(os.WriteFile(filepath.Join(string(servers), "handle"), []byte(v.Handle), 0o644))
	asNobody(t, servers, ownerWord)
}
