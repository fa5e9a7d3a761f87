package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// An expansion that fails and cannot be undone keeps its promise of room. A retry takes no more.
func TestFailedExpandTakesRoomOnce(t *testing.T) {
	const some, more = 6 << 20, 8 << 20
	for _, pool := range []string{"image", "directory"} {
		t.Run(pool, func(t *testing.T) {
			f := newFixture(t)
			v, other := f.create(pool, "one"), f.create(pool, "another")
			staging := f.in(pool).folder(stagingFolder)
			expand := func(handle string, size int64) error {
				return second(f.Expand(t.Context(), handle, backends.CapacityRange{RequiredBytes: size}))
			}
			must(t, os.Remove(staging)) // No record can be replaced, neither by the new one nor by the old one.
			for range 3 {
				for _, handle := range []string{v.Handle, other.Handle} {
					hasKind(t, "Expand", expand(handle, more), backends.Unavailable, "interrupted")
				}
				f.promised(2 * more)
			}
			must(t, os.Mkdir(staging, 0o700))
			must(t, f.Delete(t.Context(), other.Handle))
			f.promised(more)
			must(t, expand(v.Handle, some))
			f.promised(some)
			must(t, f.Delete(t.Context(), v.Handle))
			f.promised(0)
		})
	}
}

// An image that was already being grown when a further expansion fails is not truncated: its size is in between.
func TestFailedExpandLeavesWhatWasBeingGrown(t *testing.T) {
	const image, most = 12 << 20, 16 << 20
	f := newFixture(t)
	v := f.create("image", "one")
	growing := f.rewrites(v.Handle, func(r *volumeRecord) { r.SizeBytes, r.ExpandingFromBytes = 8<<20, 4<<20 })
	must(t, os.Truncate(f.data(v.Handle), image))
	staging := f.in("image").folder(stagingFolder)
	must(t, os.Remove(staging)) // No record can be replaced.
	grow := func() error {
		return second(f.Expand(t.Context(), v.Handle, backends.CapacityRange{RequiredBytes: most}))
	}
	hasKind(t, "Expand", grow(), backends.Unavailable, "interrupted")
	info, err := os.Stat(f.data(v.Handle))
	must(t, err)
	if r := f.volumesRecord(v.Handle); info.Size() != image || r.SizeBytes != growing.SizeBytes ||
		r.ExpandingFromBytes != growing.ExpandingFromBytes {
		t.Errorf("the image has %d bytes, want %d, and the record is %+v", info.Size(), image, r)
	}
	must(t, os.Mkdir(staging, 0o700))
	must(t, grow())
	if info, err := os.Stat(f.data(v.Handle)); err != nil || info.Size() != most {
		t.Errorf("the image has %d bytes, %v, want %d", info.Size(), err, most)
	}
	f.promised(most)
}

// growingFails is a growth that fails after the record was written and cannot be undone.
type growingFails struct{}

func (growingFails) extend(_ context.Context, v *volume, record *volumeRecord) error {
	data, err := encode(record)
	return errors.Join(err, os.WriteFile(filepath.Join(v.dir, recordFile), data, 0o600), errors.New("it fails"))
}

func (growingFails) shrink(*volume, int64) error { return errors.New("taking it back fails") }

// A directory's data does not depend on the size in its record, so the record gets the old size back. An image stays as
// large as it became: its record keeps the intent, and the next start completes it.
func TestFailedGrowthThatCannotBeTakenBack(t *testing.T) {
	const old, wanted = 4 << 20, 8 << 20
	for pool, want := range map[string]struct{ size, from, later int64 }{
		"directory": {size: old, later: old},
		"image":     {size: wanted, from: old, later: wanted},
	} {
		t.Run(pool, func(t *testing.T) {
			f := newFixture(t)
			v := f.create(pool, "one")
			failing := *f.in(pool).storage
			failing.growth = growingFails{}
			f.in(pool).storage = &failing
			hasKind(t, "Expand", second(f.Expand(t.Context(), v.Handle, backends.CapacityRange{RequiredBytes: wanted})),
				backends.Unavailable, "interrupted")
			data, err := os.ReadFile(filepath.Join(f.dir(v.Handle), recordFile))
			must(t, err)
			var after volumeRecord
			must(t, decode(data, &after))
			if after.SizeBytes != want.size || after.ExpandingFromBytes != want.from {
				t.Errorf("the record says %d bytes, from %d, want %+v", after.SizeBytes, after.ExpandingFromBytes, want)
			}
			f.promised(wanted) // Its size is unknown.
			f.reopen()
			got, err := f.Get(t.Context(), v.Handle)
			must(t, err)
			if got.CapacityBytes != want.later {
				t.Errorf("the volume has %d bytes after a start, want %d", got.CapacityBytes, want.later)
			}
			f.promised(want.later)
		})
	}
}

// growingStops is a growth that fails once it has grown the data.
type growingStops struct{ growth }

func (g growingStops) extend(ctx context.Context, v *volume, record *volumeRecord) error {
	return errors.Join(g.growth.extend(ctx, v, record), errors.New("it stops"))
}

// A failed expansion gives an image back the length that it had, not that of its record: a node uses all of it.
func TestFailedExpandKeepsTheWholeImage(t *testing.T) {
	for name, test := range map[string]struct{ size, from, length int64 }{
		"as recorded":                {4 << 20, 0, 4 << 20},
		"enlarged by hand":           {4 << 20, 0, 12 << 20},
		"enlarged beyond the wanted": {4 << 20, 0, 20 << 20},
		"an expansion was cut short": {8 << 20, 4 << 20, 6 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			v := f.create("image", "one")
			f.rewrites(v.Handle, func(r *volumeRecord) { r.SizeBytes, r.ExpandingFromBytes = test.size, test.from })
			must(t, os.Truncate(f.data(v.Handle), test.length))
			failing := *f.in("image").storage
			failing.growth = growingStops{failing.growth}
			f.in("image").storage = &failing
			_, err := f.Expand(t.Context(), v.Handle, backends.CapacityRange{RequiredBytes: 16 << 20})
			hasKind(t, "Expand", err, backends.Unknown, "it stops")
			info, err := os.Stat(f.data(v.Handle))
			must(t, err)
			if r := f.volumesRecord(v.Handle); info.Size() != test.length || r.SizeBytes != test.size ||
				r.ExpandingFromBytes != test.from {
				t.Errorf("the image has %d bytes, and its record %d from %d, want %+v", info.Size(), r.SizeBytes,
					r.ExpandingFromBytes, test)
			}
		})
	}
}

// rewrites changes the record of a volume and returns it.
func (f *fixture) rewrites(handle string, change func(*volumeRecord)) volumeRecord {
	f.Helper()
	v, err := f.stock.volumes.get(handle)
	must(f, err)
	record := *v.record.Load()
	change(&record)
	must(f, v.replaceRecord(&record))
	return record
}
