package backendtest

import (
	"context"
	"path/filepath"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// snapshotSpec returns the spec of a snapshot.
func (w *world) snapshotSpec(name, volume string) backends.SnapshotSpec {
	return backends.SnapshotSpec{Name: name, Volume: volume, Parameters: w.h.SnapshotParameters}
}

func (w *world) groupSpec(name string, volumes ...string) backends.GroupSpec {
	return backends.GroupSpec{Name: name, Volumes: volumes, Parameters: w.h.SnapshotParameters,
		Fingerprint: canary + " of group " + name}
}

// snapshot takes a snapshot and waits until it is ready.
func (w *world) snapshot(name, volume string) *backends.Snapshot {
	w.Helper()
	s, err := w.f.Snapshot.CreateSnapshot(w.ctx(), w.snapshotSpec(name, volume))
	if err != nil || s == nil {
		w.Fatalf("CreateSnapshot %q: got %v, %v; want a snapshot", name, s, err)
	}
	return w.ready(s.Handle)
}

// ready waits until a snapshot can be restored.
func (w *world) ready(handle string) *backends.Snapshot {
	w.Helper()
	var s *backends.Snapshot
	w.must("waiting for the snapshot", w.settled("the snapshot gets ready", func(ctx context.Context) (err error) {
		s, err = w.f.Snapshot.GetSnapshot(ctx, handle)
		if err == nil && !s.Ready {
			return backends.Errorf(backends.Busy, "the snapshot is not ready")
		}
		return err
	}))
	return s
}

// node returns this node's ID.
func (w *world) node() string {
	if len(w.h.Nodes) == 0 {
		return ""
	}
	return w.h.Nodes[0]
}

// attachRequest requests a volume with the first of its access types and modes.
func (w *world) attachRequest(v *backends.Volume, node string) backends.AttachRequest {
	access := w.spec(v.Name).Access
	access.Types, access.Modes = access.Types[:1], access.Modes[:1]
	return backends.AttachRequest{Handle: v.Handle, Node: node, Access: access}
}

// attach attaches the volume to this node, if the backend is an Attacher.
func (w *world) attach(v *backends.Volume, as backends.AccessType) backends.Attachment {
	w.Helper()
	attachment := backends.Attachment{Handle: v.Handle, Type: as, Attributes: map[string]string{}}
	for key, value := range v.Attributes {
		attachment.Attributes[key] = value
	}
	if w.f.Attach == nil {
		return attachment
	}
	request := w.attachRequest(v, w.node())
	request.Access.Types = []backends.AccessType{as}
	attributes, err := w.f.Attach.Attach(w.ctx(), request)
	w.must("Attach", err)
	for key, value := range attributes {
		attachment.Attributes[key] = value
	}
	return attachment
}

// leave undoes attach and Source.
func (w *world) leave(handle string) {
	w.Helper()
	if w.f.Release != nil {
		w.must("Release", w.f.Release.Release(w.ctx(), handle))
	}
	if w.f.Attach != nil {
		w.must("Detach", w.f.Attach.Detach(w.ctx(), handle, w.node()))
	}
}

// usableVolume checks that the volume can be used on this node.
func (w *world) usableVolume(handle string) {
	w.Helper()
	v := w.get(handle)
	for _, as := range w.spec(v.Name).Access.Types {
		source, err := w.n.Source(w.ctx(), w.attach(v, as))
		w.must("Source", err)
		w.describesSomething(source)
		w.leave(handle)
	}
}

// describesSomething checks that the result of Source is usable.
func (w *world) describesSomething(source backends.Source) {
	w.Helper()
	switch s := source.(type) {
	case backends.Directory:
		if !filepath.IsAbs(s.Path) {
			w.Errorf("Source: the directory %q is not an absolute path", s.Path)
		}
	case backends.Device:
		if !filepath.IsAbs(s.Path) || s.Identity.SizeBytes <= 0 {
			w.Errorf("Source: the device %+v has no absolute path or no size", s)
		}
		if !s.Image && s.Identity.Serial == "" {
			w.Errorf("Source: the device %+v has no serial number, so that nothing proves it is the right one", s)
		}
	case backends.Export:
		if s.FSType == "" || s.Source == "" {
			w.Errorf("Source: the export %+v has no filesystem type or no source", s)
		}
	default:
		w.Errorf("Source: got %T, want a Directory, Device or Export", source)
	}
}

// usableSnapshot checks that the snapshot can be restored.
func (w *world) usableSnapshot(handle string) {
	w.Helper()
	w.ready(handle)
	v, err := w.f.Snapshot.Restore(w.ctx(), w.spec("restored to see that it is whole"), handle)
	w.must("Restore", err)
	w.usableVolume(v.Handle)
	w.must("Delete", w.c.Delete(w.ctx(), v.Handle))
}
