package adversary

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stowage-csi/stowage/tests/testfs"
)

// TestLargeVolumesAreRead shows that a foreign version in a large volume is found at the end, whether the volume is in
// use then or not.
func TestLargeVolumesAreRead(t *testing.T) {
	for name, last := range map[string]Op{"in use": Pause, "not in use": Leave} {
		t.Run(name, func(t *testing.T) {
			w, err := newWorld(t, overStrictAPI(), NewTally(), nil, patient())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := w.close(); err != nil {
					t.Error(err)
				}
			})
			a := newActor(w, 0, nil)
			for _, s := range []Step{{Op: Create, MiB: 8}, {Op: Use}, {Op: Write, Count: 4}, {Op: last}} {
				a.step(s)
			}
			v := a.volumes[0]
			if v == nil || !v.large() || len(w.wrong) > 0 {
				t.Fatalf("got the volume %v and %q, want a large one", v, w.wrong)
			}
			if w.held([]*actor{a}); len(w.wrong) > 0 {
				t.Fatalf("the right contents: got %q, want nothing", w.wrong)
			}
			if last == Pause {
				a.step(Step{Op: Use})
			}
			w.cloud.Server.Write(v.id, `{"f0": 4711}`)
			if w.held([]*actor{a}); len(w.wrong) == 0 || class(w.wrong[0]) != "acknowledged data" {
				t.Errorf("got %q, want a violation about acknowledged data", w.wrong)
			}
		})
	}
}

// TestWritten distinguishes volumes with data, and copies of such, from others.
func TestWritten(t *testing.T) {
	full := newContents(vector{"f0": 1})
	for name, test := range map[string]struct {
		volume *volume
		want   bool
	}{
		"new":             {&volume{contents: newContents(nil)}, false},
		"written to":      {&volume{contents: full}, true},
		"a copy":          {&volume{origin: &copied{source: full}}, true},
		"a copy of a new": {&volume{origin: &copied{source: newContents(nil)}}, false},
	} {
		if got := test.volume.written(); got != test.want {
			t.Errorf("%s: got %t, want %t", name, got, test.want)
		}
	}
}

// TestForeignDataLimitsPromises fills half of a filesystem with foreign data, and a quarter with a volume's: only the
// volume's counts as room for promises.
func TestForeignDataLimitsPromises(t *testing.T) {
	testfs.NeedRoot(t)
	dir := t.TempDir()
	if err := unix.Mount("adversary", dir, "tmpfs", 0, "size=16m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.UMOUNT_NOFOLLOW); err != nil {
			t.Error(err)
		}
	})
	for name, size := range map[string]int{filler + "data": 8 << 20, "image": 4 << 20} {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for promised, want := range map[int64]string{7 << 20: "", 9 << 20: "promises never exceed what is there"} {
		w := &world{setup: Setup{Counts: true, Classes: []Class{{}}}, disks: []*disk{{dir: dir}}, ledger: newLedger(),
			limits: limits{lists: 50 * time.Millisecond}}
		w.ledger.volumes["v"] = &volume{bytes: promised}
		w.promised(nil)
		if got := class(append(w.wrong, "")[0]); got != want {
			t.Errorf("%d MiB are promised: got %q, want %q", promised>>20, got, want)
		}
	}
}

// TestNothingIsRefusedWhenAllIsCalm makes calls with final refusals that a schedule may have: when all is calm, only a
// full storage and earlier faults are reasons.
func TestNothingIsRefusedWhenAllIsCalm(t *testing.T) {
	const blame = "all is calm, and nothing is refused"
	for name, test := range map[string]struct {
		code            codes.Code
		exact, disturbs bool
		cloud, some     bool
		want            string
	}{
		"in a schedule":              {code: codes.NotFound, some: true},
		"a snapshot is not found":    {code: codes.NotFound, exact: true, some: true, want: blame},
		"after a fault":              {code: codes.NotFound, exact: true, disturbs: true, some: true},
		"volumes fill the storage":   {code: codes.ResourceExhausted, exact: true, some: true},
		"an empty storage is full":   {code: codes.ResourceExhausted, exact: true, want: blame},
		"a cloud is full":            {code: codes.ResourceExhausted, exact: true, cloud: true, some: true, want: blame},
		"a size that nobody changed": {code: codes.OutOfRange, exact: true, some: true, want: blame},
	} {
		w := &world{life: t.Context(), tally: NewTally(), limits: patient(), ledger: newLedger(),
			setup: Setup{Cloud: test.cloud}}
		w.exact.Store(test.exact)
		w.disturbed.Store(test.disturbs)
		if test.some {
			w.ledger.volumes["v"] = &volume{}
		}
		err := w.ask(request{name: "CreateVolume v-1", makes: true, refusals: []codes.Code{test.code},
			send: func(context.Context) (string, error) { return "", status.Error(test.code, "") }})
		if !errors.Is(err, errRefused) {
			t.Errorf("%s: got %v, want the final refusal", name, err)
		}
		if got := class(append(w.wrong, "")[0]); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
