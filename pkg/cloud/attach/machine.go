package attach

import (
	"context"
	"fmt"
	"time"

	"github.com/stowage-csi/stowage/pkg/cloud/flight"
	"github.com/stowage-csi/stowage/pkg/cloud/names"
)

// Options configure a Machine.
type Options struct {
	// PerNode and InAll bound how many attachments are under way, per node and overall. The same bounds apply to
	// detachments.
	PerNode, InAll int64
	// Timeout bounds one request that changes the cloud's state.
	Timeout time.Duration
	// Settle is how long the cloud may take to show the effect of a request.
	Settle time.Duration
	// Tick is how far apart two attachments must begin for their IDs to differ: one second if an ID is a time in seconds.
	Tick time.Duration
	// Now returns how the volume is attached at an instant after the call began. Cloud.Look may return an older state, but
	// costs less. Kinds: NotFound; Unsupported when the cloud cannot tell, which a nil Now also means; Busy and
	// Unavailable.
	Now func(ctx context.Context, volume string) (Volume, error)
	// Names chooses device names; nil for clouds without device names.
	Names *names.Allocator
	// Remember is how long to rely on the cloud's list of a node's device names and the names chosen since. The cloud
	// refuses a name that another process has taken meanwhile.
	Remember time.Duration
}

// Machine attaches and detaches the volumes of one cloud. All callers in a process must use the same Machine.
type Machine struct {
	cloud     Cloud
	options   Options
	flights   flight.Group[Attachment]
	attaching *slots
	detaching *slots
	taken     taken
	begun     begun // attachments
	ended     begun // detachments
	over      over
}

// New makes a Machine.
func New(cloud Cloud, options Options) *Machine {
	return &Machine{
		cloud: cloud, options: options,
		attaching: newSlots(options.PerNode, options.InAll),
		detaching: newSlots(options.PerNode, options.InAll),
		begun:     begun{settle: options.Settle},
		ended:     begun{settle: options.Settle},
		over:      over{tick: options.Tick},
	}
}

// wait polls, and hides attachments that are known to have ended.
func (m *Machine) wait(ctx context.Context, transition, volume string,
	until func(Volume, error) (bool, error)) (Volume, error) {
	v, err := m.cloud.Wait(ctx, transition, volume, func(v Volume, err error) (bool, error) {
		return until(m.over.without(volume, v), err)
	})
	return m.over.without(volume, v), err
}

// Current returns a volume as the cloud showed it, without the attachments that are known to have ended.
func (m *Machine) Current(volume string, shown Volume) Volume { return m.over.without(volume, shown) }

// Request is the volume and the node to attach or detach.
type Request struct {
	Volume, Node string
	// Seen is the state of the volume at an instant after the call began, if known. It saves a look.
	Seen *Volume
}

// Attach returns once the cloud reports that the volume is attached to the node. Kinds: NotFound for the volume or the
// node; InUse, naming the other node, when it is attached elsewhere and the cloud attaches it to one only; Exhausted
// when the node can take no more; Busy and Unavailable when the outcome is not known or not decided yet.
func (m *Machine) Attach(ctx context.Context, r Request) (Attachment, error) {
	what := fmt.Sprintf("attaching volume %q to node %q", r.Volume, r.Node)
	return m.flights.Do(ctx, flight.Op{Key: r.Volume, What: what, Join: true},
		func(ctx context.Context) (Attachment, error) {
			a := attempt{m: m, Request: r}
			return a.run(ctx)
		})
}

// Detach returns once the cloud reports that the volume is not attached to the node, or to any node if node is empty.
// Kinds: NotFound for the volume; Busy and Unavailable when the outcome is not known or not decided yet.
func (m *Machine) Detach(ctx context.Context, r Request) error {
	what := fmt.Sprintf("detaching volume %q from node %q", r.Volume, r.Node)
	if r.Node == "" {
		what = fmt.Sprintf("detaching volume %q from every node", r.Volume)
	}
	_, err := m.flights.Do(ctx, flight.Op{Key: r.Volume, What: what, Join: true},
		func(ctx context.Context) (Attachment, error) {
			return Attachment{}, m.detach(ctx, r)
		})
	return err
}
