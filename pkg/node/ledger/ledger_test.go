package ledger

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
)

func open(t *testing.T, dir, boot string) (*Ledger, Report) {
	t.Helper()
	l, report, err := Open(t.Context(), dir, boot, nil)
	if err != nil {
		t.Fatal(err)
	}
	return l, report
}

func put(t *testing.T, l *Ledger, record Record) {
	t.Helper()
	if err := l.Put(record); err != nil {
		t.Fatal(err)
	}
}

func sample(volume string) Record {
	return Record{
		Volume: volume,
		Staged: &Staging{
			Path: "/staging/" + volume, Type: backends.Mount, Mode: backends.MultiNodeMultiWriter, ReadOnly: true, Pending: true,
			Group: "12",
			Source: Source{Kind: Device, Path: "/images/a", Image: true, FSType: "xfs", DevicePath: "/dev/loop7", Major: 7,
				Minor: 7},
			Root: Root{Dev: 1 << 40, Ino: 64},
		},
		Published: []Publication{{Target: "/target/" + volume, Mode: backends.MultiNodeMultiWriter, ReadOnly: true}},
	}
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, e := range entries {
		found = append(found, e.Name())
	}
	return found
}

func TestRecordSurvivesTheProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "by", "it")
	l, _ := open(t, dir, "boot")
	hostile := "../../../etc/passwd\x00\n" + strings.Repeat("ü", 200)
	for _, volume := range []string{"a", hostile} {
		put(t, l, sample(volume))
		again, report := open(t, dir, "boot")
		if got := again.Get(volume); !reflect.DeepEqual(got, sample(volume)) {
			t.Errorf("volume %q came back as %+v", volume, got)
		}
		if report.Loaded != again.Volumes() || report.Stale != 0 || report.SetAside != nil {
			t.Errorf("report %+v of %d volumes", report, again.Volumes())
		}
	}
	for _, volume := range []string{"a", hostile} {
		put(t, l, Record{Volume: volume})
		put(t, l, Record{Volume: volume})
	}
	if left := names(t, dir); len(left) != 0 || l.Volumes() != 0 {
		t.Errorf("after all was removed there are %d records and files %v", l.Volumes(), left)
	}
}

// Files that were set aside do not pile up: the newest stay, and those of this start, whatever their age.
func TestFilesSetAsideAreBounded(t *testing.T) {
	dir, age := t.TempDir(), time.Unix(1e9, 0)
	for i := range asidesKept + 10 {
		age = age.Add(time.Minute)
		writeAged(t, filepath.Join(dir, fmt.Sprintf("%d%s%s", i, recordEnding, asideEnding)), age)
	}
	writeAged(t, filepath.Join(dir, "bad"+recordEnding), time.Unix(1, 0))
	_, report := open(t, dir, "now")
	left := names(t, dir)
	if len(report.SetAside) != 1 || len(left) != asidesKept {
		t.Errorf("set aside are %v; left are %d files, want %d", report.SetAside, len(left), asidesKept)
	}
	for name, stays := range map[string]bool{"bad": true, "10": false, "11": true, fmt.Sprint(asidesKept + 9): true} {
		if file := name + recordEnding + asideEnding; slices.Contains(left, file) != stays {
			t.Errorf("that %s is left is %t, want %t", file, !stays, stays)
		}
	}
}

// writeAged creates a file that holds no record, with a time of its last change.
func writeAged(t *testing.T, path string, changed time.Time) {
	t.Helper()
	if err := errors.Join(os.WriteFile(path, []byte("{"), 0o600), os.Chtimes(path, changed, changed)); err != nil {
		t.Fatal(err)
	}
}

func TestOpenClearsUp(t *testing.T) {
	dir := t.TempDir()
	before, _ := open(t, dir, "earlier")
	put(t, before, sample("stale"))
	now, _ := open(t, t.TempDir(), "now")
	put(t, now, sample("good"))
	data, err := os.ReadFile(now.store.path("good"))
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := strings.ReplaceAll(string(data), "/staging/good", "/staging/other")
	newer := strings.Replace(string(data), `"version":1`, `"version":2`, 1)
	path := before.store.path
	for file, content := range map[string]string{
		path("good"):                           string(data),
		path("half"):                           string(data[:len(data)/2]),
		path("nothing"):                        "",
		path("another name"):                   elsewhere,
		path("newer"):                          newer,
		path("says nothing"):                   `{"version":1,"boot":"now","volume":"says nothing"}`,
		path("unfinished") + tempEnding:        string(data[:10]),
		filepath.Join(dir, "x"+asideEnding):    "looked at by somebody",
		filepath.Join(dir, "README"):           "not ours",
		path("wrong field"):                    strings.Replace(string(data), `"good"`, `1`, 1),
		filepath.Join(dir, "short.json"):       string(data),
		filepath.Join(dir, "binary"+".json"):   "\x00\xff",
		filepath.Join(dir, "list"+".json"):     "[]",
		filepath.Join(dir, "temporary"+".tmp"): "",
	} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l, report := open(t, dir, "now")
	if got := l.Get("good"); !reflect.DeepEqual(got, sample("good")) {
		t.Errorf("the good record came back as %+v", got)
	}
	if report.Loaded != 1 || report.Stale != 1 || len(report.SetAside) != 9 {
		t.Errorf("loaded %d, stale %d, set aside %d: %v", report.Loaded, report.Stale, len(report.SetAside), report.SetAside)
	}
	for _, aside := range report.SetAside {
		if _, err := os.Stat(aside.Path); err != nil || aside.Reason == nil {
			t.Errorf("%+v: %v", aside, err)
		}
	}
	if slices.ContainsFunc(names(t, dir), func(n string) bool { return filepath.Ext(n) == tempEnding }) {
		t.Errorf("temporary files are left: %v", names(t, dir))
	}
	if again, report := open(t, dir, "now"); report.Loaded != 1 || report.SetAside != nil ||
		again.Get("stale").Staged != nil {
		t.Errorf("the second start found %+v", report)
	}
}

// Fields of a later version do not make a volume's record unreadable: after a downgrade to this version the volumes in
// use are known.
func TestOpenReadsWhatItKnows(t *testing.T) {
	dir := t.TempDir()
	l, _ := open(t, dir, "now")
	put(t, l, sample("a"))
	path := l.store.path("a")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(data), `"version"`, `"later":{"x":1},"version"`, 1)),
		0o600); err != nil {
		t.Fatal(err)
	}
	if l, report := open(t, dir, "now"); !reflect.DeepEqual(l.Get("a"), sample("a")) || report.SetAside != nil {
		t.Errorf("it came back as %+v: %+v", l.Get("a"), report)
	}
}

// wantUnknown checks that the record of a volume is unknown, because a path cannot be read.
func wantUnknown(t *testing.T, l *Ledger, volume, path string) {
	t.Helper()
	if _, err := l.Known(t.Context(), volume); !backends.Is(err, backends.Unavailable) ||
		!strings.Contains(err.Error(), path) {
		t.Errorf("%q while it cannot be read: got %v, want Unavailable with %s", volume, err, path)
	}
	if got := l.Get(volume); !got.Empty() {
		t.Errorf("%q while it cannot be read: the record is %+v", volume, got)
	}
}

// wantKnown checks that the record of a volume is known.
func wantKnown(t *testing.T, l *Ledger, want Record) {
	t.Helper()
	if _, err := l.Known(t.Context(), want.Volume); err != nil || !reflect.DeepEqual(l.Get(want.Volume), want) {
		t.Errorf("%q: the record is %+v (%v), want %+v", want.Volume, l.Get(want.Volume), err, want)
	}
}

// A record that cannot be read this time is not set aside: its volume may be in use. All other volumes are served, and
// that one is once its record can be read, or was removed by hand.
func TestRecordThatCannotBeRead(t *testing.T) {
	for _, removed := range []bool{false, true} {
		dir := t.TempDir()
		before, _ := open(t, dir, "now")
		put(t, before, sample("a"))
		put(t, before, sample("b"))
		path := before.store.path("a")
		if err := errors.Join(os.Rename(path, path+".kept"), os.Symlink(path, path)); err != nil { // to itself
			t.Fatal(err)
		}
		l, report := open(t, dir, "now")
		if len(report.Unread) != 1 || report.SetAside != nil || report.Loaded != 1 {
			t.Errorf("the start found %+v", report)
		}
		for range 2 {
			wantUnknown(t, l, "a", path)
			wantKnown(t, l, sample("b"))
		}
		put(t, l, Record{Volume: "b"})
		want, err := Record{Volume: "a"}, os.Remove(path)
		if !removed {
			want, err = sample("a"), errors.Join(err, os.Rename(path+".kept", path))
		}
		if err != nil {
			t.Fatal(err)
		}
		wantKnown(t, l, want)
		put(t, l, Record{Volume: "a"})
		wantKnown(t, l, Record{Volume: "a"})
	}
}

// A record that is no record after all is set aside when it can be read.
func TestRecordThatIsReadLate(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, stem("a")+recordEnding)
	if err := os.Symlink(path, path); err != nil { // to itself
		t.Fatal(err)
	}
	l, _ := open(t, dir, "now")
	wantUnknown(t, l, "a", path)
	if err := errors.Join(os.Remove(path), os.WriteFile(path, []byte("{"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if report, err := l.Known(t.Context(), "a"); err != nil || len(report.SetAside) != 1 {
		t.Errorf("got %+v, %v, want one file set aside", report, err)
	}
	wantKnown(t, l, Record{Volume: "a"})
}

// While its record could not be read, a volume was unpublished, and another one published at the target. Then the
// record counts without that target, and so it does after a restart. It is refused if its staging path has another
// owner.
func TestLateRecordWithAnothersPath(t *testing.T) {
	for _, staged := range []bool{false, true} {
		dir := t.TempDir()
		before, _ := open(t, dir, "now")
		late, other := sample("a").WithPublication(Publication{Target: "/target/kept"}), sample("b")
		put(t, before, late)
		path := before.store.path("a")
		if err := errors.Join(os.Rename(path, path+".kept"), os.Symlink(path, path)); err != nil { // to itself
			t.Fatal(err)
		}
		l, _ := open(t, dir, "now")
		want := late.WithoutPublication(late.Published[0].Target)
		other.Published[0].Target = late.Published[0].Target
		if staged {
			other.Staged.Path, want = late.Staged.Path, Record{Volume: "a"}
		}
		put(t, l, other)
		if err := errors.Join(os.Remove(path), os.Rename(path+".kept", path)); err != nil {
			t.Fatal(err)
		}
		wantKnown(t, l, want)
		wantKnown(t, l, other)
		l, report := open(t, dir, "now")
		wantKnown(t, l, want)
		wantKnown(t, l, other)
		if len(report.SetAside) != 0 {
			t.Errorf("the restart found %+v", report)
		}
	}
}

// A ledger cannot write two records of one path: one of them counts, the other is reported.
func TestOpenRefusesClash(t *testing.T) {
	dir := t.TempDir()
	for _, volume := range []string{"a", "b"} {
		alone, _ := open(t, t.TempDir(), "boot")
		record := sample(volume)
		record.Published[0].Target = "/target/both"
		alone.store.dir = dir
		put(t, alone, record)
	}
	l, report := open(t, dir, "boot")
	if l.Volumes() != 1 || len(report.SetAside) != 1 || l.Owner("/target/both") == "" {
		t.Errorf("%d records count, report %+v", l.Volumes(), report)
	}
}

func TestPathBelongsToOneVolume(t *testing.T) {
	dir := t.TempDir()
	l, _ := open(t, dir, "boot")
	put(t, l, sample("a"))
	thief := sample("b").WithPublication(Publication{Target: "/target/a"})
	if err := l.Put(thief); !backends.Is(err, backends.InUse) || !strings.Contains(err.Error(), `"a"`) {
		t.Fatalf("taking another volume's path gave %v, want InUse naming it", err)
	}
	if l.Owner("/target/a") != "a" || l.Owner("/staging/b") != "" || !l.Get("b").Empty() || len(names(t, dir)) != 1 {
		t.Errorf("the refused record left something: %v, %v", l.owners, names(t, dir))
	}
	put(t, l, l.Get("a").WithoutPublication("/target/a"))
	put(t, l, thief)
	if l.Owner("/target/a") != "b" || l.Owner("/staging/a") != "a" || l.Owner("/target/b") != "b" {
		t.Errorf("owners %v", l.owners)
	}
}

func TestFailedPutChangesNothing(t *testing.T) {
	dir := t.TempDir()
	l, _ := open(t, dir, "boot")
	put(t, l, sample("a"))
	// A missing file and a directory in place of the temporary file make the write fail, even for root.
	content, err := os.ReadFile(l.store.path("a"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(l.store.path("a")); err != nil {
		t.Fatal(err)
	}
	next := l.store.path("a") + tempEnding
	if err := os.MkdirAll(filepath.Join(next, "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := l.Put(sample("a").WithPublication(Publication{Target: "/more"})); !backends.Is(err, backends.Unavailable) {
		t.Fatalf("Put gave %v, want Unavailable", err)
	}
	if !reflect.DeepEqual(l.Get("a"), sample("a")) || l.Owner("/more") != "" || l.Owner("/staging/a") != "a" {
		t.Errorf("after a failed Put: %+v, owners %v", l.Get("a"), l.owners)
	}
	if err := os.RemoveAll(next); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(l.store.path("a"), content, 0o600); err != nil {
		t.Fatal(err)
	}
	again, _ := open(t, dir, "boot")
	if !reflect.DeepEqual(again.Get("a"), sample("a")) {
		t.Errorf("on disk: %+v", again.Get("a"))
	}
}

// A volume that was taken down is known to be, although the disk says otherwise, and the next record corrects the disk.
func TestDropNeedsNoDisk(t *testing.T) {
	dir := t.TempDir()
	l, _ := open(t, dir, "boot")
	put(t, l, sample("a"))
	blocked := filepath.Join(l.store.path("a")+tempEnding, "full") // makes the write fail, even for root
	if err := errors.Join(os.Remove(l.store.path("a")), os.MkdirAll(blocked, 0o700),
		os.MkdirAll(filepath.Join(l.store.path("a"), "full"), 0o700)); err != nil {
		t.Fatal(err)
	}
	less := sample("a").WithoutPublication("/target/a")
	for _, record := range []Record{less, {Volume: "a"}, {Volume: "a"}} {
		if err := l.Drop(record); !backends.Is(err, backends.Unavailable) {
			t.Errorf("Drop gave %v, want Unavailable", err)
		}
		if got := l.Get("a"); !reflect.DeepEqual(got, record) {
			t.Errorf("after Drop of %+v there is %+v", record, got)
		}
		if l.Owner("/target/a") != "" || (l.Owner("/staging/a") != "") == record.Empty() {
			t.Errorf("owners %v", l.owners)
		}
	}
	if err := errors.Join(os.RemoveAll(l.store.path("a")), os.RemoveAll(filepath.Dir(blocked))); err != nil {
		t.Fatal(err)
	}
	put(t, l, less)
	if again, _ := open(t, dir, "boot"); !slices.Equal(again.Get("a").Paths(), less.Paths()) {
		t.Errorf("on disk: %+v", again.Get("a"))
	}
}

// Many changes stay in one file of bounded length, and the last one counts.
func TestManyChanges(t *testing.T) {
	dir := t.TempDir()
	l, _ := open(t, dir, "boot")
	for i := range 1000 {
		changed := sample("a").WithPublication(Publication{Target: fmt.Sprint("/target/", i)})
		put(t, l, changed)
		if i%100 != 0 {
			continue
		}
		if again, _ := open(t, dir, "boot"); !reflect.DeepEqual(again.Get("a"), changed) {
			t.Fatalf("change %d came back as %+v", i, again.Get("a"))
		}
	}
	info, err := os.Stat(l.store.path("a"))
	if err != nil || info.Size() > longest+1024 || len(names(t, dir)) != 1 {
		t.Errorf("the file has %d bytes (%v), and there are %v", info.Size(), err, names(t, dir))
	}
}

// The process was killed in the middle of writing a line: the line before counts, and later lines are read again.
func TestTornLine(t *testing.T) {
	dir := t.TempDir()
	l, _ := open(t, dir, "boot")
	put(t, l, sample("a"))
	changed := sample("a").WithPublication(Publication{Target: "/more"})
	whole, err := os.ReadFile(l.store.path("a"))
	if err != nil {
		t.Fatal(err)
	}
	put(t, l, changed)
	both, err := os.ReadFile(l.store.path("a"))
	if err != nil {
		t.Fatal(err)
	}
	for cut := len(whole); cut < len(both); cut += 7 {
		if err := os.WriteFile(l.store.path("a"), both[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		torn, report := open(t, dir, "boot")
		if !reflect.DeepEqual(torn.Get("a"), sample("a")) || report.SetAside != nil {
			t.Fatalf("cut at %d of %d: %+v, report %+v", cut, len(both), torn.Get("a"), report)
		}
		put(t, torn, changed)
		if again, _ := open(t, dir, "boot"); !reflect.DeepEqual(again.Get("a"), changed) {
			t.Fatalf("cut at %d: the next record came back as %+v", cut, again.Get("a"))
		}
	}
}

func TestRecordsAreNotShared(t *testing.T) {
	l, _ := open(t, t.TempDir(), "boot")
	mine := sample("a")
	put(t, l, mine)
	mine.Staged.Path, mine.Published[0].Target = "changed", "changed"
	got := l.Get("a")
	got.Staged.Path, got.Published[0].Target = "changed", "changed"
	if !reflect.DeepEqual(l.Get("a"), sample("a")) {
		t.Errorf("the ledger's record was changed from outside: %+v", l.Get("a"))
	}
	with := sample("a").WithPublication(Publication{Target: "/target/a", Mode: backends.SingleNodeWriter})
	if p, ok := with.Publication("/target/a"); !ok || p.Mode != backends.SingleNodeWriter || len(with.Published) != 1 {
		t.Errorf("one target has %+v", with.Published)
	}
	if _, ok := with.WithoutPublication("/target/a").Publication("/target/a"); ok {
		t.Error("a publication that was removed is there")
	}
	if r := with.WithStaging(nil); r.Staged != nil || len(r.Paths()) != 1 {
		t.Errorf("without staging: %+v", r)
	}
}

func TestVolumesInParallel(t *testing.T) {
	dir := t.TempDir()
	l, _ := open(t, dir, "boot")
	var wait sync.WaitGroup
	for i := range 16 {
		wait.Go(func() {
			volume := fmt.Sprint("volume-", i)
			for range 20 {
				if err := l.Put(sample(volume)); err != nil {
					t.Error(err)
				}
				if err := l.Put(Record{Volume: volume}); err != nil {
					t.Error(err)
				}
			}
			if err := l.Put(sample(volume)); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if again, _ := open(t, dir, "boot"); again.Volumes() != 16 || len(again.owners) != 32 {
		t.Errorf("%d volumes at %d paths, want 16 at 32", again.Volumes(), len(again.owners))
	}
}

func TestOpenFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Open(t.Context(), file, "boot", nil); !backends.Is(err, backends.Unavailable) {
		t.Errorf("Open of a file gave %v, want Unavailable", err)
	}
}

func TestBootID(t *testing.T) {
	first, err := BootID()
	second, _ := BootID()
	if err != nil || first != second || len(first) != 36 {
		t.Errorf("BootID() = %q, then %q, %v", first, second, err)
	}
}

func BenchmarkPut(b *testing.B) {
	l, _, err := Open(b.Context(), b.TempDir(), "boot", nil)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := l.Put(sample("a")); err != nil {
			b.Fatal(err)
		}
	}
}

// A record that could not be removed is removed with the next change that the disk accepts, unless its volume has a
// record again by then.
func TestRecordsThatStayedGoLater(t *testing.T) {
	for _, again := range []bool{false, true} {
		l, _ := open(t, t.TempDir(), "boot")
		put(t, l, sample("a"))
		path := l.store.path("a")
		content, err := os.ReadFile(path)
		if err == nil {
			// makes the removal fail, even for root
			err = errors.Join(os.Remove(path), os.MkdirAll(filepath.Join(path, "full"), 0o700))
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Drop(Record{Volume: "a"}); !backends.Is(err, backends.Unavailable) {
			t.Fatalf("Drop gave %v, want Unavailable", err)
		}
		if err := errors.Join(os.RemoveAll(path), os.WriteFile(path, content, 0o600)); err != nil {
			t.Fatal(err)
		}
		if again {
			put(t, l, sample("a"))
		}
		put(t, l, sample("b"))
		if _, err := os.Stat(path); (err == nil) != again {
			t.Errorf("a volume that is used again %t: its record: %v", again, err)
		}
	}
}
