package up

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/stowage-csi/stowage/tests/e2e/cluster/access"
	"github.com/stowage-csi/stowage/tests/e2e/cluster/images"
	"github.com/stowage-csi/stowage/tests/e2e/cluster/layout"
	"github.com/stowage-csi/stowage/tests/e2e/cluster/leftovers"
	"github.com/stowage-csi/stowage/tests/e2e/cluster/programs"
	"github.com/stowage-csi/stowage/tests/e2e/cluster/store"
)

// Options describe the cluster to bring up.
type Options struct {
	Layout layout.Layout
	Nodes  int
	Tree   string // the root of the source tree
	Store  string // the folder of built programs and images
	Out    io.Writer
}

// patience is the limit until a cluster is ready, once everything is built.
const patience = 5 * time.Minute

// made is everything that a cluster needs.
type made struct {
	binaries map[string]string // the path of each program by its name
	images   []string
	addons   string // a folder of manifests
	version  string // of Kubernetes
}

// Up brings the cluster up, or makes sure that it is up.
func Up(ctx context.Context, o Options) error {
	if o.Nodes < 1 || o.Nodes > layout.MaxNodes {
		return fmt.Errorf("a cluster has 1 to %d nodes, not %d", layout.MaxNodes, o.Nodes)
	}
	begun := time.Now()
	unlock, err := store.Lock(ctx, o.Layout.Lock())
	if err != nil {
		return err
	}
	defer unlock()
	_, running, err := o.Layout.Running()
	if err != nil {
		return err
	}
	if running {
		return o.again(ctx)
	}
	// Before everything is built, not only afterwards.
	if err := leftovers.Removable(o.Layout); err != nil {
		return err
	}
	m, err := o.make(ctx)
	if err != nil {
		return err
	}
	o.say("built, or found, all programs and images in %v", since(begun))
	if err := clean(ctx, o.Layout); err != nil {
		return err
	}
	begun = time.Now()
	if err := o.write(m); err != nil {
		return err
	}
	if err := o.launch(ctx); err != nil {
		return err
	}
	if err := o.ready(ctx, begun); err != nil {
		return err
	}
	o.usage(m.version)
	return nil
}

// again makes sure that a running cluster is ready.
func (o Options) again(ctx context.Context) error {
	d, err := o.Layout.Description()
	if err != nil {
		return err
	}
	if d.Nodes != o.Nodes {
		return fmt.Errorf("the cluster in %s is up with %d nodes, not %d: make cluster-down first", o.Layout.Data(), d.Nodes,
			o.Nodes)
	}
	o.say("the cluster in %s is up already", o.Layout.Data())
	if err := o.ready(ctx, time.Now()); err != nil {
		return err
	}
	if err := o.renew(ctx, d); err != nil {
		return err
	}
	o.usage(d.Version)
	return nil
}

// renew loads the images whose sources have changed since a running cluster was brought up. Running pods keep their
// images.
func (o Options) renew(ctx context.Context, d layout.Description) error {
	m, err := o.make(ctx)
	if err != nil {
		return err
	}
	c, err := access.Open(o.Layout.Data())
	if err != nil {
		return err
	}
	for _, archive := range m.images {
		if slices.Contains(d.Images, archive) {
			continue
		}
		if err := c.LoadImage(ctx, archive); err != nil {
			return err
		}
		o.say("loaded %s", filepath.Base(archive))
	}
	d.Images = m.images
	return o.Layout.Describe(d)
}

// make builds or finds everything that the cluster runs.
func (o Options) make(ctx context.Context) (*made, error) {
	entries := &store.Store{Dir: o.Store, Out: o.Out, Label: "cluster"}
	builder, err := programs.NewBuilder(ctx, o.tools(), entries)
	if err != nil {
		return nil, err
	}
	m := &made{binaries: map[string]string{}, version: builder.Kubernetes()}
	for _, p := range programs.Nodes() {
		if m.binaries[p.Name], err = builder.Build(ctx, p); err != nil {
			return nil, err
		}
	}
	if m.addons, err = addons(ctx, builder, entries); err != nil {
		return nil, err
	}
	m.images, err = (&images.Maker{Builder: builder, Store: entries, Tree: o.Tree}).All(ctx)
	return m, err
}

// Down takes the cluster down, including the leftovers of one that died.
func Down(ctx context.Context, l layout.Layout, out io.Writer) error {
	begun := time.Now()
	unlock, err := store.Lock(ctx, l.Lock())
	if err != nil {
		return err
	}
	defer unlock()
	_, running, err := l.Running()
	if err != nil {
		return err
	}
	there := running || l.Exists()
	if err := clean(ctx, l); err != nil {
		return err
	}
	if there {
		fmt.Fprintf(out, "cluster: took down the cluster in %s in %v\n", l.Data(), since(begun))
	} else {
		fmt.Fprintf(out, "cluster: there is no cluster in %s\n", l.Data())
	}
	return nil
}

// clean removes everything of the cluster.
func clean(ctx context.Context, l layout.Layout) error {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("it is still in use after a minute"))
	defer cancel()
	if err := kill(ctx, l); err != nil {
		return err
	}
	if l.Exists() {
		if err := leftovers.DetachLoops(l.Data()); err != nil {
			return err
		}
	}
	if err := leftovers.RemoveCgroups(ctx, l.Cgroup()); err != nil {
		return err
	}
	return leftovers.RemoveFolder(ctx, l)
}

func (o Options) say(format string, args ...any) {
	fmt.Fprintf(o.Out, "cluster: "+format+"\n", args...)
}

func since(begun time.Time) time.Duration { return time.Since(begun).Round(100 * time.Millisecond) }
