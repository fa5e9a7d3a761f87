package nfs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// newPair returns a world with two configured shares, one and other, and the path of the other.
func newPair(t *testing.T) (w *world, other string) {
	t.Helper()
	w = newWorld(t)
	w.configured("one")
	other = filepath.Join(filepath.Dir(filepath.Dir(w.root)), slowServer, testShare)
	w.must(os.MkdirAll(other, 0o755))
	w.config.Shares = append(w.config.Shares, ShareConfig{Name: "other", Server: slowServer, Share: testShare})
	w.reopen()
	return w, other
}

// flood writes the given number of records of 60 KiB to a share, most likely behind the existing ones.
func (w *world) flood(root string, k kind, count int) {
	w.Helper()
	for i := range count {
		record := fmt.Sprintf(`{"version":1,"kind":%q,"id":"f%031x","turn":"%016x","sizeBytes":1,"onDelete":"delete",`+
			`"subDir":"flood","handle":"flood-%d","name":%q}`, k, i, i, i, strings.Repeat("x", 60<<10))
		path := filepath.Join(root, share.HomeName, k.folder(), fmt.Sprintf("f%031x%s", i, suffix))
		w.must(os.WriteFile(path, []byte(record), 0o644))
	}
}

// heap returns the number of bytes of memory in use.
func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// keeps fails unless at most so many bytes more than before stay in use. Calls that were given up may still be reading,
// and a collection frees nothing that was allocated while it runs.
func (w *world) keeps(what string, before, most int64) {
	w.Helper()
	grown := int64(0)
	defer func() {
		if w.Failed() {
			w.Logf("%s keeps %d bytes, want %d at most", what, grown, most)
		}
	}()
	w.eventually(what+" keeps little", func() bool { grown = heap() - before; return grown <= most })
}

// handles returns the handles of an enumeration.
func (w *world) handles(k kind) (all []string, err error) {
	if k == snapshotKind {
		found, _, err := w.ListSnapshots(w.Context(), "", backends.Page{Limit: 500})
		for _, s := range found {
			all = append(all, s.Handle)
		}
		return all, err
	}
	found, _, err := w.List(w.Context(), backends.Page{Limit: 500})
	for _, v := range found {
		all = append(all, v.Handle)
	}
	return all, err
}

// An attacker fills one share with records. That share is away, the items of the others are listed, and the controller
// does not keep the data that it has read.
func TestFloodedShareIsAway(t *testing.T) {
	const budget, most = 4 << 20, 8 << 20
	for _, k := range []kind{volumeKind, snapshotKind} {
		t.Run(string(k), func(t *testing.T) {
			w, other := newPair(t)
			w.budget = budget
			var want []string
			for _, name := range []string{"one", "other"} {
				v := w.make(onShare("on-"+name, name))
				s, err := w.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "of-" + name, Volume: v.Handle})
				w.must(err)
				want = append(want, map[kind]string{volumeKind: v.Handle, snapshotKind: s.Handle}[k])
			}
			slices.Sort(want)
			w.handlesAre(k, want)
			before := heap()
			w.flood(other, k, 400)
			w.noticed()
			w.handlesAre(k, want)
			w.keeps("a list", before, most)
			if k == volumeKind {
				w.lists(want...) // in pages, of which each later one is within the budget
				unwell, _, err := w.ListHealth(t.Context(), backends.Page{})
				if err != nil || len(unwell) != 1 || unwell[0].Issues[0].Reason != "ShareUnreachable" {
					t.Errorf("what is unwell is %.300v, %v; want the volume of the flooded share", unwell, err)
				}
			}
			w.reopen()
			w.budget = budget
			_, err := w.handles(k)
			w.fails("a list of what was never seen", err, backends.Unavailable, "@other", share.At(k.folder(), ""), "4 MiB",
				"remove")
			w.keeps("a list that fails", before, most)
		})
	}
}

// A share that cannot be read stops no list of the others, and its own items are as they were last seen.
func TestUnreadableShareStopsNoList(t *testing.T) {
	w, other := newPair(t)
	both := []string{w.make(onShare("on-one", "one")).Handle, w.make(onShare("on-other", "other")).Handle}
	slices.Sort(both)
	w.handlesAre(volumeKind, both)
	volumes := filepath.Join(other, share.HomeName, share.Volumes)
	w.must(os.Rename(volumes, volumes+"-away"))
	w.must(os.WriteFile(volumes, nil, 0o644))
	w.noticed()
	w.lists(both...)
	w.must(os.Remove(volumes))
	w.must(os.Rename(volumes+"-away", volumes))
	w.noticed()
	w.lists(both...)
}

func (w *world) handlesAre(k kind, want []string) {
	w.Helper()
	have, err := w.handles(k)
	if slices.Sort(have); err != nil || !slices.Equal(have, want) {
		w.Errorf("it lists %d, of which the first are %q, %v; want %q", len(have), have[:min(3, len(have))], err, want)
	}
}

// 100,000 volumes on one share are no flood, with names, settings and handles of usual length.
func TestManyHonestVolumesAreNoFlood(t *testing.T) {
	const made, honest = 200, 100_000
	w := newWorld(t)
	w.configured("a-share-of-the-configuration")
	w.reopen()
	for i := range made {
		spec := onShare(fmt.Sprintf("pvc-0a1b2c3d-4e5f-6071-8293-%012d", i), "a-share-of-the-configuration")
		spec.Fingerprint = strings.Repeat("f", 64)
		spec.Settings = map[string]string{"csi.storage.k8s.io/fstype": "nfs4", "fsGroupChangePolicy": "OnRootMismatch"}
		w.make(spec)
	}
	s, release, err := w.pool.Hold(t.Context(), w.named["a-share-of-the-configuration"])
	w.must(err)
	defer release()
	h, err := s.Home(false)
	w.must(err)
	budget := share.NewBudget(mostBytes)
	l := survey{home: h.Within(budget), shown: h, kind: volumeKind, all: &sightings{},
		want: func(*record) bool { return true }}
	found, err := l.entries(t.Context())
	w.must(err)
	if len(found) != made || len(l.all.all) != made {
		t.Fatalf("it found %d and keeps %d, want %d", len(found), len(l.all.all), made)
	}
	const most = mostBytes / honest * 3 / 4 // of a volume
	if budget.Spend(mostBytes-made*most) != nil {
		t.Errorf("a volume takes more than %d bytes, and %d of them more than three quarters of the %d that there are", most,
			honest, mostBytes)
	}
	if budget.Spend(made*most) == nil {
		t.Error("volumes take nothing of the budget")
	}
}

// A record is no larger than this driver writes it.
func TestRecordsAreBounded(t *testing.T) {
	long := strings.Repeat("x", 5<<10)
	for name, change := range map[string]func(r *record){
		"name":           func(r *record) { r.Name = long[:4*128+1] },
		"handle":         func(r *record) { r.Handle = long[:129] },
		"fingerprint":    func(r *record) { r.Fingerprint = long },
		"sourceSnapshot": func(r *record) { r.SourceSnapshot = long },
		"sourceVolume":   func(r *record) { r.SourceVolume = long },
		"nfsVersion":     func(r *record) { r.NFSVersion = long },
		"settings":       func(r *record) { r.Settings = map[string]string{"key": long} },
		"group":          func(r *record) { r.Group = &membership{Handle: long} },
		"members":        func(r *record) { r.Members = []member{{ID: strings.Repeat("0", 32)}} },
	} {
		r := &record{Version: recordVersion, Kind: volumeKind, ID: strings.Repeat("0", 32), Turn: strings.Repeat("1", 16),
			Name: strings.Repeat("\xff", 128), SizeBytes: 1, OnDelete: deleteData, SubDir: "x",
			Settings: map[string]string{"key": long[:4<<10-3]}}
		decode := func() error {
			data, err := r.encode()
			if err != nil {
				t.Fatal(err)
			}
			_, err = decodeRecord(data, "here")
			return err
		}
		if err := decode(); err != nil {
			t.Errorf("before %s is changed: %v", name, err)
		}
		change(r)
		if err := decode(); !backends.Is(err, backends.Unusable) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v, want a failure that is Unusable and names it", name, err)
		}
	}
}

// The remembered items of all shares together are limited: the largest list is dropped first.
func TestWhatWasSeenIsBounded(t *testing.T) {
	s := newSeen()
	large, small := place{Name: "large"}, place{Name: "small"}
	on := func(p place) asked { return asked{place: p, away: context.DeadlineExceeded} }
	s.remember(volumeKind, on(large), s.turn(homeID{}), &sightings{bytes: mostKept})
	s.remember(snapshotKind, on(small), s.turn(homeID{}), &sightings{bytes: 1})
	_, err := s.recall(volumeKind, on(large), "", 0, nil)
	(&world{TB: t}).fails("the largest list", err, backends.Unavailable, "not known")
	if _, err := s.recall(snapshotKind, on(small), "", 0, nil); err != nil {
		t.Errorf("the other list: %v", err)
	}
}

// Enumerations of one share run one after the other, and those of other shares at the same time.
func TestOneReadsAShare(t *testing.T) {
	s := newSeen()
	one, other := place{Name: "one"}, place{Name: "other"}
	release, err := s.reading(t.Context(), one)
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.reading(ended, one)
	(&world{TB: t}).fails("a second reader", err, backends.Unavailable, "@one")
	for _, p := range []place{other, one} {
		if p == one {
			release()
		}
		if _, err := s.reading(t.Context(), p); err != nil {
			t.Errorf("%s: %v", p.key(), err)
		}
	}
}
