package backendtest

import (
	"slices"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// modeChecks are about volumes that were created as raw devices. Because their users may have written anything to them,
// a kernel mounts their contents only if that is allowed explicitly. A backend with one access type has nothing to mix
// up.
func modeChecks() []check {
	return []check{{"what was made as a raw device is no filesystem", func(w *world) {
		mounted, err := w.c.Create(w.ctx(), w.as("mounted", backends.Mount))
		if err != nil || !slices.Contains(mounted.Access.Types, backends.Block) {
			return
		}
		w.must("Delete", w.c.Delete(w.ctx(), mounted.Handle))
		raw, err := w.c.Create(w.ctx(), w.as("raw", backends.Block))
		w.must("Create", err)
		w.staysRaw(raw)
		if w.f.Clone != nil {
			w.copiesStayRaw("clone", w.f.Clone.Clone, raw.Handle)
		}
		if w.f.Snapshot != nil {
			w.copiesStayRaw("restored", w.f.Snapshot.Restore, w.snapshot("snapshot", raw.Handle).Handle)
		}
		if w.f.Group != nil {
			g, err := w.f.Group.CreateGroup(w.ctx(), w.groupSpec("group", raw.Handle))
			w.must("CreateGroup", err)
			w.copiesStayRaw("of a group", w.f.Snapshot.Restore, w.ready(g.Snapshots[0].Handle).Handle)
		}
	}}}
}

// as returns a spec with one access type.
func (w *world) as(name string, as backends.AccessType) backends.Spec {
	spec := w.spec(name)
	spec.Access.Types = []backends.AccessType{as}
	return spec
}

// staysRaw checks that a volume can only be used as a raw device.
func (w *world) staysRaw(v *backends.Volume) {
	w.Helper()
	if have := w.get(v.Handle).Access.Types; !slices.Equal(have, []backends.AccessType{backends.Block}) {
		w.Errorf("%s can be used as %v, want block only", v.Name, have)
	}
	attachment := backends.Attachment{Handle: v.Handle, Attributes: v.Attributes}
	if w.f.Attach != nil {
		request := w.attachRequest(v, w.node())
		request.Access.Types = []backends.AccessType{backends.Mount}
		w.fails("Attach as a filesystem", second(w.f.Attach.Attach(w.ctx(), request)), backends.Invalid)
		// Kubernetes attaches a volume once for all PersistentVolumes that name it, whatever their modes. So the node must
		// know the mode by itself, or from what Attach returned.
		attachment = w.attach(v, backends.Block)
		defer func() { w.must("Detach", w.f.Attach.Detach(w.ctx(), v.Handle, w.node())) }()
	}
	attachment.Type = backends.Mount
	w.fails("Source as a filesystem", second(w.n.Source(w.ctx(), attachment)), backends.Unsupported)
}

// copiesStayRaw creates volumes with the contents of a raw device.
func (w *world) copiesStayRaw(name string, fill fill, source string) {
	w.Helper()
	w.fails(name+" as a filesystem", second(fill(w.ctx(), w.as(name+" mounted", backends.Mount), source)),
		backends.Invalid)
	v, err := fill(w.ctx(), w.as(name+" raw", backends.Block), source)
	w.must(name+" as a raw device", err)
	w.staysRaw(v)
	allowed := w.as(name+" allowed", backends.Mount)
	allowed.AllowModeChange = true
	v, err = fill(w.ctx(), allowed, source)
	w.must(name+" as a filesystem that is allowed", err)
	if !slices.Contains(w.get(v.Handle).Access.Types, backends.Mount) {
		w.Errorf("%s, which is allowed to be a filesystem, can be used as %v", name, v.Access.Types)
	}
}
