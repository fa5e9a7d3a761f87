package backendtest

import (
	"math"
	"reflect"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// expandChecks check the promises of Expander.
func expandChecks() []check {
	return []check{
		{"a volume grows and keeps its data", growKeepsData},
		{"a volume that is large enough is left as it is", growLargeEnough},
		{"a range that cannot be met is OutOfRange and nothing changes", growImpossible},
		{"a volume in use grows too", growInUse},
		{"concurrent calls end in the largest size", growConcurrently},
	}
}

// expand grows a volume and checks that the returned size is true.
func (w *world) expand(handle string, size backends.CapacityRange) int64 {
	w.Helper()
	got, err := w.f.Expand.Expand(w.ctx(), handle, size)
	w.must("Expand", err)
	if now := w.get(handle).CapacityBytes; now != got.CapacityBytes {
		w.Errorf("Expand returned %d bytes, the volume has %d", got.CapacityBytes, now)
	}
	return got.CapacityBytes
}

func growKeepsData(w *world) {
	v := w.volume("one")
	types := w.contentTypes(v)
	w.writeAs(types, v.Handle, "kept")
	before := w.get(v.Handle)
	want := backends.CapacityRange{RequiredBytes: 2 * v.CapacityBytes}
	if size := w.expand(v.Handle, want); !want.Contains(size) {
		w.Errorf("grown to %d bytes, want %s", size, want)
	}
	w.holdsAs(types, "the grown volume", v.Handle, "kept")
	after := w.get(v.Handle)
	before.CapacityBytes = after.CapacityBytes
	if !reflect.DeepEqual(after, before) {
		w.Errorf("the grown volume is\n%+v\nwant\n%+v", after, before)
	}
}

func growLargeEnough(w *world) {
	v := w.volume("one")
	for _, size := range []backends.CapacityRange{
		{RequiredBytes: v.CapacityBytes},
		{RequiredBytes: v.CapacityBytes, LimitBytes: v.CapacityBytes},
		{RequiredBytes: v.CapacityBytes - 1},
		{RequiredBytes: 1},
		{LimitBytes: v.CapacityBytes},
		{LimitBytes: 2 * v.CapacityBytes},
		{},
	} {
		if now := w.expand(v.Handle, size); now != v.CapacityBytes {
			w.Errorf("a volume of %d bytes was grown to %d for %s, want no change", v.CapacityBytes, now, size)
		}
	}
}

func growImpossible(w *world) {
	v := w.volume("one")
	before := w.get(v.Handle)
	for _, size := range []backends.CapacityRange{
		{RequiredBytes: 2 * v.CapacityBytes, LimitBytes: 2*v.CapacityBytes - 1},
		{RequiredBytes: v.CapacityBytes, LimitBytes: v.CapacityBytes - 1},
		{RequiredBytes: math.MaxInt64},
		{RequiredBytes: math.MaxInt64 - 4096},
	} {
		_, err := w.f.Expand.Expand(w.ctx(), v.Handle, size)
		kinds := []backends.Kind{backends.OutOfRange}
		if size.LimitBytes == 0 {
			kinds = append(kinds, backends.Exhausted)
		}
		w.fails("growing to "+size.String(), err, kinds...)
	}
	if after := w.get(v.Handle); !reflect.DeepEqual(after, before) {
		w.Errorf("after that the volume is\n%+v\nwant\n%+v", after, before)
	}
}

func growInUse(w *world) {
	v := w.volume("one")
	attachment := w.attach(v, w.spec("one").Access.Types[0])
	before, err := w.n.Source(w.ctx(), attachment)
	w.must("Source", err)
	size := w.expand(v.Handle, backends.CapacityRange{RequiredBytes: v.CapacityBytes + 1})
	if size <= v.CapacityBytes {
		w.Errorf("a volume in use of %d bytes has %d after Expand, want more", v.CapacityBytes, size)
	}
	after, err := w.n.Source(w.ctx(), attachment)
	w.must("Source after Expand", err)
	if d, ok := before.(backends.Device); ok {
		// The attachment is from before. A node that knows the size only from the attachment reports the old size, which is
		// right for the minimum size of the device.
		if now, _ := after.(backends.Device); w.f.Attach == nil || d.Image || now.Identity.SizeBytes != d.Identity.SizeBytes {
			d.Identity.SizeBytes = size
		}
		before = d
	}
	if !reflect.DeepEqual(after, before) {
		w.Errorf("Source is %+v after Expand, want %+v", after, before)
	}
	w.leave(v.Handle)
}

func growConcurrently(w *world) {
	v := w.volume("one")
	largest := 2 * v.CapacityBytes
	w.eachOf(8, func(i int) {
		size := backends.CapacityRange{RequiredBytes: largest - int64(i)*v.CapacityBytes/8}
		if got, err := w.f.Expand.Expand(w.ctx(), v.Handle, size); err != nil {
			w.fails("growing beside others", err, backends.Busy)
		} else if !size.Contains(got.CapacityBytes) {
			w.Errorf("grown to %d bytes, want %s", got.CapacityBytes, size)
		}
	})
	if now := w.get(v.Handle).CapacityBytes; now <= v.CapacityBytes {
		w.Errorf("the volume has %d bytes after all, want more than %d", now, v.CapacityBytes)
	}
	w.expand(v.Handle, backends.CapacityRange{RequiredBytes: largest})
}
