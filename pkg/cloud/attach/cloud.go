package attach

import (
	"context"
	"errors"
	"slices"
	"time"
)

// ErrNameTaken says that another disk has the device name on that node; Cloud.Attach wraps it.
var ErrNameTaken = errors.New("the device name is taken")

// ErrNotAttached says that the cloud refused to detach, because there is no such attachment: that is the proof that
// there is none. Cloud.Detach wraps it.
var ErrNotAttached = errors.New("the volume is not attached there")

// State is where a volume is on its way to or from a node. A volume that is detached has none.
type State string

// The states.
const (
	Attaching State = "attaching"
	Attached  State = "attached"
	Detaching State = "detaching"
)

// Attachment is a volume's connection to a node.
type Attachment struct {
	Node string
	Name string // the device name, in clouds that have them
	// ID tells this attachment from others of the volume to the node, before and after it; empty in clouds that cannot.
	// One that has ended never comes back.
	ID    string
	State State
	// Began is when it began, by the cloud's clock; zero in clouds that do not say. It is compared with the cloud's own
	// times only.
	Began time.Time
}

// Volume is what the cloud says about a volume.
type Volume struct {
	// Shared says that the cloud attaches the volume to several nodes at a time.
	Shared      bool
	Attachments []Attachment
}

// Has reports whether the volume has an attachment to the node, or to any if that is empty.
func (v Volume) Has(node string) bool {
	return slices.ContainsFunc(v.Attachments, func(a Attachment) bool { return node == "" || a.Node == node })
}

// on returns the volume's attachment to a node.
func (v Volume) on(node string) (Attachment, bool) {
	i := slices.IndexFunc(v.Attachments, func(a Attachment) bool { return a.Node == node })
	if i < 0 {
		return Attachment{}, false
	}
	return v.Attachments[i], true
}

// elsewhere returns an attachment to another node, one that is not going away if there is any.
func (v Volume) elsewhere(node string) (found Attachment, ok bool) {
	for _, a := range v.Attachments {
		if a.Node != node && (!ok || found.State == Detaching) {
			found, ok = a, true
		}
	}
	return found, ok
}

// Cloud is what a Machine needs of a cloud. All failures are Errors of package backends; one after which the cloud may
// or may not have done what was asked is Unavailable.
type Cloud interface {
	// Look says how the volume is attached now. Kinds: NotFound.
	Look(ctx context.Context, volume string) (Volume, error)

	// Wait looks from time to time until the function is content or fails. The function is shown NotFound too. Kinds:
	// those of the function; Busy when the context ends first. The transition is "attach" or "detach".
	Wait(ctx context.Context, transition, volume string, until func(Volume, error) (bool, error)) (Volume, error)

	// Attach asks for an attachment and returns when the cloud has accepted that, with Attachment.Began. Kinds: NotFound
	// for the volume or the node; InUse when it is attached, wherever that may be; Exhausted when the node can take no
	// more; Busy when the cloud has refused it for now; Unavailable, and no other, when it is not known whether anything
	// was begun. ErrNameTaken when another disk has the name there.
	Attach(ctx context.Context, volume, node, name string) (began time.Time, err error)

	// Detach asks for the end of an attachment, of any if the node is empty, and returns when the cloud has accepted that,
	// with how long ago it began, by the cloud's clock; 0 in clouds that do not say. Where there is no such attachment it
	// fails with ErrNotAttached; while one is on its way out it need not. Kinds: NotFound for the volume.
	Detach(ctx context.Context, volume, node string) (age time.Duration, err error)

	// Taken lists the device names that disks of the node have; a cloud without them lists none. Kinds: NotFound for
	// the node.
	Taken(ctx context.Context, node string) ([]string, error)
}
