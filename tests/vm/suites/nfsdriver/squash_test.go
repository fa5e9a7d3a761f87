package nfsdriver

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stowage-csi/stowage/tests/inprocess"
	"github.com/stowage-csi/stowage/tests/vm/nfsd"
)

// keyAfterSquash has a controller that at first may not read the share's key. It must not continue without it: the key
// derives IDs from names, so that the next controller would not find its volumes.
func (s *site) keyAfterSquash(ctx context.Context) {
	first := inprocess.Start(s, inprocess.Options{Backend: "nfs"})
	s.must(newLife(s.T, first.Conn, "first", direct, s.export.Path).patiently(ctx, "create")) // It creates the key.
	s.must(exported(func(e *nfsd.Export) { e.Options = []string{"root_squash"} })(ctx, s))
	second := inprocess.Start(s, inprocess.Options{Backend: "nfs"})
	made := newLife(s.T, second.Conn, "second", direct, s.export.Path)
	if err := made.do(ctx, "create"); status.Code(err) != codes.Unavailable ||
		!strings.Contains(err.Error(), "no_root_squash") {
		s.Errorf("without the key: %v, want Unavailable with the way out: nobody can look whether it is there", err)
	}
	s.must(asOnce(ctx, s))
	s.eventually(ctx, made, "create")
	third := inprocess.Start(s, inprocess.Options{Backend: "nfs"})
	for _, name := range []string{"first", "second"} {
		found := newLife(s.T, third.Conn, name, direct, s.export.Path)
		s.must(found.patiently(ctx, "create"))
		if name == made.name && found.id != made.id {
			s.Errorf("the next controller gives %q the ID %s, and it was made with %s", name, found.id, made.id)
		}
		s.must(found.patiently(ctx, "delete"))
	}
}

// TestSquashedCopies takes a snapshot of a file that a controller with squashed root may read, but not give to its
// owner. The snapshot is refused, and succeeds once the controller has the right.
func TestSquashedCopies(t *testing.T) {
	s := newSite(t, nfsd.Config{})
	s.must(exported(func(e *nfsd.Export) { e.Options = []string{"root_squash"} })(t.Context(), s))
	share := filepath.Join(s.export.Path, "squashed")
	s.must(os.Mkdir(share, 0o777))
	s.must(os.Chmod(share, 0o777))
	driver := inprocess.Start(s, inprocess.Options{Backend: "nfs"})
	v := newLife(t, driver.Conn, "volume", direct, share)
	s.must(v.patiently(t.Context(), "create"))
	s.must(os.WriteFile(filepath.Join(share, "volume", "file"), []byte("text"), 0o644))
	s.must(os.Chown(filepath.Join(share, "volume", "file"), userID, groupID))
	request := &csi.CreateSnapshotRequest{Name: "snapshot", SourceVolumeId: v.id}
	_, err := taken(t.Context(), v.controllerClient, request)
	if status.Code(err) != codes.PermissionDenied || !strings.Contains(status.Convert(err).Message(), "no_root_squash") {
		t.Errorf("a snapshot whose owners cannot be kept: %v, want PermissionDenied with the way out", err)
	}
	s.must(asOnce(t.Context(), s))
	var made *csi.CreateSnapshotResponse
	for begun := time.Now(); ; <-time.After(pause) {
		if made, err = v.controllerClient.CreateSnapshot(t.Context(), request); err == nil || time.Since(begun) > patience {
			break
		}
	}
	s.must(err)
	if !made.GetSnapshot().GetReadyToUse() {
		t.Error("the snapshot is not ready")
	}
	copies, err := filepath.Glob(filepath.Join(share, ".stowage", "snapshots", "*", "file"))
	s.must(err)
	var stat unix.Stat_t
	if len(copies) != 1 {
		t.Fatalf("there are the copies %v, want one", copies)
	}
	s.must(unix.Stat(copies[0], &stat))
	if stat.Uid != userID || stat.Gid != groupID {
		t.Errorf("the copy belongs to %d:%d", stat.Uid, stat.Gid)
	}
}
