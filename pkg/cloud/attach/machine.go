package attach

import (
	"context"
	"fmt"
	"time"

	"github.com/stowage-csi/stowage/pkg/cloud/flight"
	"github.com/stowage-csi/stowage/pkg/cloud/names"
)

// Options say how a Machine works.
type Options struct {
	// PerNode and InAll are how many attachments may be under way, and again as many detachments.
	PerNode, InAll int64
	// Timeout bounds one request that changes something.
	Timeout time.Duration
	// Settle is how long the cloud may take to show what was asked of it.
	Settle time.Duration
	// Tick is how far apart two attachments must begin for their IDs to differ: one second where an ID is a time in
	// seconds.
	Tick time.Duration
	// Now is how the volume is attached at an instant after the call has begun, where Cloud.Look may show an older one. It
	// costs more. Kinds: NotFound; Unsupported when the cloud cannot be asked that, as when it is nil; Busy and
	// Unavailable.
	Now func(ctx context.Context, volume string) (Volume, error)
	// Names chooses device names; nil in clouds without.
	Names *names.Allocator
	// Remember is how long the device names that a node has are taken to be those that the cloud listed, and those given
	// since: a name that another has taken meanwhile is refused by the cloud.
	Remember time.Duration
}

// Machine attaches and detaches the volumes of one cloud. All who do so in a process must use the same one.
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

// wait looks from time to time, without what is known to have ended.
func (m *Machine) wait(ctx context.Context, transition, volume string,
	until func(Volume, error) (bool, error)) (Volume, error) {
	v, err := m.cloud.Wait(ctx, transition, volume, func(v Volume, err error) (bool, error) {
		return until(m.over.without(volume, v), err)
	})
	return m.over.without(volume, v), err
}

// Current is a volume as it was shown, without the attachments that are known to have ended.
func (m *Machine) Current(volume string, shown Volume) Volume { return m.over.without(volume, shown) }

// Request says what is to be attached where, or no longer.
type Request struct {
	Volume, Node string
	// Seen is how the volume was since the call began, if that is known: it saves a look.
	Seen *Volume
}

// Attach returns once the cloud says that the volume is attached to the node. Kinds: NotFound for the volume or the
// node; InUse, naming the other node, when it is attached elsewhere and the cloud attaches it to one only; Exhausted
// when the node can take no more; Busy and Unavailable when it is not known or not decided yet.
func (m *Machine) Attach(ctx context.Context, r Request) (Attachment, error) {
	what := fmt.Sprintf("attaching volume %q to node %q", r.Volume, r.Node)
	return m.flights.Do(ctx, flight.Op{Key: r.Volume, What: what, Join: true},
		func(ctx context.Context) (Attachment, error) {
			a := attempt{m: m, Request: r}
			return a.run(ctx)
		})
}

// Detach returns once the cloud says that the volume is not attached to the node; with an empty node, to any. Kinds:
// NotFound for the volume; Busy and Unavailable when it is not known or not decided yet.
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
