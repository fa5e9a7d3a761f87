package backendtest

import "github.com/stowage-csi/stowage/pkg/backends"

// contentTypes returns the access types with which the suite can write to a volume.
func (w *world) contentTypes(v *backends.Volume) []backends.AccessType {
	w.Helper()
	types := w.spec(v.Name).Access.Types
	if w.h.Write != nil {
		return types
	}
	var usable []backends.AccessType
	for _, as := range types {
		source, err := w.n.Source(w.ctx(), w.attach(v, as))
		w.must("Source", err)
		w.leave(v.Handle)
		if d, isDevice := source.(backends.Device); isDevice && d.Image {
			usable = append(usable, as)
		} else if _, isDirectory := source.(backends.Directory); isDirectory {
			usable = append(usable, as)
		}
	}
	if len(usable) == 0 {
		w.Logf("CONTENT IS NOT CHECKED: Source describes neither a directory nor an image; give Harness.Write and Read")
	}
	return usable
}

// writeAs writes text to the volume with each of the types, which may or may not share their data.
func (w *world) writeAs(types []backends.AccessType, handle, text string) {
	w.Helper()
	for _, as := range types {
		w.write(handle, as, text)
	}
}

// holdsAs checks the data that was written last, with each of the types.
func (w *world) holdsAs(types []backends.AccessType, what, handle, text string) {
	w.Helper()
	for _, as := range types {
		w.holds(what, handle, as, text)
	}
}

// write replaces the data on the volume by text.
func (w *world) write(handle string, as backends.AccessType, text string) {
	w.Helper()
	attachment := w.attach(w.get(handle), as)
	if w.h.Write != nil {
		w.h.Write(w.TB, w.instance, attachment, []byte(text))
	} else {
		source, err := w.n.Source(w.ctx(), attachment)
		w.must("Source", err)
		switch s := source.(type) {
		case backends.Directory:
			w.must("writing", writeDirectory(s.Path, []byte(text)))
		case backends.Device:
			w.must("writing", writeImage(s, []byte(text)))
		}
	}
	w.leave(handle)
}

// holds checks that text was written to the volume last; an empty text means that nothing was written.
func (w *world) holds(what, handle string, as backends.AccessType, text string) {
	w.Helper()
	var have []byte
	attachment := w.attach(w.get(handle), as)
	if w.h.Read != nil {
		have = w.h.Read(w.TB, w.instance, attachment)
	} else {
		source, err := w.n.Source(w.ctx(), attachment)
		w.must("Source", err)
		switch s := source.(type) {
		case backends.Directory:
			have, err = readDirectory(s.Path)
		case backends.Device:
			have, err = readImage(s)
		}
		if err != nil {
			w.Errorf("%s, as %s: %v", what, as, err)
		}
	}
	if string(have) != text {
		w.Errorf("%s, as %s, has the data %q, want %q", what, as, have, text)
	}
	w.leave(handle)
}
