package localvolume

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/local"
	"github.com/stowage-csi/stowage/pkg/volume"
)

// calm is a cluster without failures except those of the test.
type calm struct {
	*simulation
	ctx        context.Context
	background sync.WaitGroup
}

// inCalm runs a test in simulated time, after the nodes have reported their pools. No worker runs.
func inCalm(t *testing.T, test func(c *calm)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		c := &calm{simulation: newSimulation(t, 0, false, 20*mib), ctx: ctx}
		for _, n := range c.nodes {
			c.background.Go(func() { n.report(ctx) })
		}
		time.Sleep(10 * time.Second) //nolint:forbidigo // Simulated time.
		defer c.background.Wait()
		defer stop()
		test(c)
	})
}

// start starts the workers of nodes.
func (c *calm) start(nodes ...string) {
	for _, name := range nodes {
		c.background.Go(func() { c.nodes[name].run(c.ctx) })
	}
}

// wanted returns the spec of a volume, on the node unless it is empty.
func wanted(name, node string) backends.Spec {
	s := backends.Spec{Name: name, Capacity: backends.CapacityRange{RequiredBytes: mib}, Fingerprint: "f",
		Parameters: &local.Parameters{}, Access: backends.Access{Types: []backends.AccessType{backends.Mount},
			Modes: []backends.AccessMode{backends.SingleNodeWriter}}}
	if node != "" {
		s.Topology.Requisite = []backends.Topology{{key: node}}
	}
	return s
}

// edge returns a master as package driver calls it.
func edge(m *Master) *volume.Service { return volume.New(m, backends.Resolve(m, nil), nil) }

// create calls a master once, as csi-provisioner does.
func (c *calm) create(m *Master, spec backends.Spec) (*backends.Volume, error) {
	ctx, cancel := context.WithTimeout(c.ctx, time.Minute)
	defer cancel()
	return edge(m).Create(ctx, spec, backends.ContentSource{})
}

// object returns the LocalVolume of the volume named "volume".
func (c *calm) object() *v1alpha1.LocalVolume {
	c.Helper()
	o := &v1alpha1.LocalVolume{}
	if err := c.api.Get(c.ctx, client.ObjectKey{Namespace: namespace, Name: local.Handle("volume")}, o); err != nil {
		c.Fatal(err)
	}
	return o
}
