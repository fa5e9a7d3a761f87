package nfs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/export"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// measured returns a volume's record, and its share.
func measured(server, id string) (*share.Share, *record) {
	return &share.Share{Address: export.Address{Server: server, Path: "/x"}}, &record{ID: server + id, SubDir: id}
}

// endless measures volumes of the server "hostile" until its context ends, and counts the looks.
func endless(looks *atomic.Int64) func(context.Context, wish) (int64, error) {
	return func(ctx context.Context, w wish) (int64, error) {
		looks.Add(1)
		if w.share.Address.Server == "hostile" {
			<-ctx.Done()
			return 5, ctx.Err()
		}
		return 7, nil
	}
}

// ends ends the measuring, which must not outlast the simulation.
func (u *usages) ends(t *testing.T) {
	t.Helper()
	if err := u.close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestEndlessMeasuring has a server on which a volume cannot be measured. Others are measured all the same, and the
// bytes of that one that were counted within the time limit become known.
func TestEndlessMeasuring(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUsages()
		var looks atomic.Int64
		u.look = endless(&looks)
		defer u.ends(t)
		for _, id := range []string{"one", "two"} {
			u.of(measured("hostile", id))
		}
		synctest.Wait()
		u.of(measured("other", "one"))
		synctest.Wait()
		if bytes, known := u.of(measured("other", "one")); !known || bytes != 7 {
			t.Errorf("another share's volume takes %d bytes, known %t, while one is measured: want 7", bytes, known)
		}
		if _, known := u.of(measured("hostile", "one")); known {
			t.Error("what is being measured is known")
		}
		time.Sleep(measureTime) //nolint:forbidigo // Simulated time.
		synctest.Wait()
		if bytes, known := u.of(measured("hostile", "one")); !known || bytes != 5 {
			t.Errorf("what was measured for too long takes %d bytes, known %t, want at least the 5 that were counted", bytes,
				known)
		}
		if n := looks.Load(); n != 3 {
			t.Errorf("%d volumes were looked at, want the second of the server too, once its turn came", n)
		}
	})
}

// TestMeasuringsThatWait queries many volumes repeatedly, while none can be measured.
func TestMeasuringsThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUsages()
		var looks atomic.Int64
		stuck := make(chan struct{})
		u.look = func(context.Context, wish) (int64, error) {
			looks.Add(1)
			<-stuck // It ignores its context too.
			return 1, nil
		}
		defer u.ends(t)
		const asked = 5
		for range 4 {
			for i := range asked {
				u.of(measured("hostile", fmt.Sprint(i)))
			}
			time.Sleep(usageAge + time.Second) //nolint:forbidigo // Simulated time.
		}
		for i := range 2 * mostWaiting {
			u.of(measured("full", fmt.Sprint(i)))
		}
		synctest.Wait()
		close(stuck)
		synctest.Wait()
		if n := looks.Load(); n != asked+mostWaiting {
			t.Errorf("%d measurings were made, want one of each of %d volumes, and %d of a share with more", n, asked,
				mostWaiting)
		}
		u.of(measured("full", fmt.Sprint(2*mostWaiting-1))) // A volume that was turned away is measured after its next query.
		synctest.Wait()
		if _, known := u.of(measured("full", fmt.Sprint(2*mostWaiting-1))); !known {
			t.Error("a volume that did not fit in is not measured afterwards")
		}
	})
}

// TestMeasuringFollowsNoLink has links to files elsewhere, on the share or on the controller's machine. A user with
// write access to the server, or to the volume, could create them to mislead the measuring.
func TestMeasuringFollowsNoLink(t *testing.T) {
	w := newWorld(t)
	v := w.make(in("pvc-1", "mine", deleteData))
	genuine, err := w.parse(volumeKind, v.Handle)
	w.must(err)
	s, release, err := w.pool.Hold(t.Context(), genuine.address)
	w.must(err)
	defer release()
	look := func() (int64, error) { return lookAt(t.Context(), wish{share: s, dir: "mine"}) }
	bytes := func() int64 {
		t.Helper()
		n, err := look()
		w.must(err)
		return n
	}
	const large = 1 << 20
	outside := t.TempDir()
	for _, dir := range []string{outside, w.path("other")} {
		w.must(os.MkdirAll(dir, 0o755))
		w.must(os.WriteFile(filepath.Join(dir, "large"), make([]byte, large), 0o600))
	}
	before := bytes()
	for name, target := range map[string]string{"file": filepath.Join(outside, "large"), "folder": outside,
		"beside": "../other"} {
		w.must(os.Symlink(target, w.path("mine", name)))
	}
	if after := bytes(); after >= before+large {
		t.Errorf("with links in it the volume takes %d bytes, and %d without: what they lead to was measured", after, before)
	}
	w.must(os.WriteFile(w.path("mine", "large"), make([]byte, large), 0o600))
	if after := bytes(); after < before+large {
		t.Errorf("with a file of %d bytes it takes %d, and %d without: nothing is shown by this", large, after, before)
	}
	for _, target := range []string{outside, "other"} {
		w.must(os.RemoveAll(w.path("mine")))
		w.must(os.Symlink(target, w.path("mine")))
		_, err := look()
		w.fails("measuring a volume that is a link to "+target+" now", err, backends.Invalid, "symlink")
	}
}
