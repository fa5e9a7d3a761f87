package attach

import (
	"context"
	"errors"
	"slices"
	"time"
)

// ErrNameTaken means that another disk has the device name on that node. Cloud.Attach wraps it.
var ErrNameTaken = errors.New("the device name is taken")

// ErrNotAttached means that the cloud refused to detach because there is no such attachment. That is the proof that
// there is none. Cloud.Detach wraps it.
var ErrNotAttached = errors.New("the volume is not attached there")

// State is how far a volume is on its way to or from a node. A detached volume has no State.
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
	// ID tells this attachment from earlier and later ones of the volume to the node; empty if the cloud has no such IDs.
	// The ID of an ended attachment never comes back.
	ID    string
	State State
	// Began is when it began, by the cloud's clock; zero if the cloud does not say. It is compared only with other times
	// of the cloud.
	Began time.Time
}

// Volume is what the cloud reports about a volume.
type Volume struct {
	// Shared reports whether the cloud attaches the volume to several nodes at a time.
	Shared      bool
	Attachments []Attachment
}

// Has reports whether the volume has an attachment to the node, or to any node if node is empty.
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

// elsewhere returns an attachment to another node, preferably one that is not detaching.
func (v Volume) elsewhere(node string) (found Attachment, ok bool) {
	for _, a := range v.Attachments {
		if a.Node != node && (!ok || found.State == Detaching) {
			found, ok = a, true
		}
	}
	return found, ok
}

// Cloud is the part of a cloud's API that a Machine needs. All failures are Errors of package failure. A failure is
// Unavailable if the cloud may or may not have carried out the request.
type Cloud interface {
	// Look returns how the volume is attached now. Kinds: NotFound.
	Look(ctx context.Context, volume string) (Volume, error)

	// Wait polls until the function returns true or fails. The function is called for NotFound too. Kinds: those of the
	// function; Busy when the context ends first. The transition is "attach" or "detach".
	Wait(ctx context.Context, transition, volume string, until func(Volume, error) (bool, error)) (Volume, error)

	// Attach requests an attachment. It returns Attachment.Began once the cloud has accepted the request. Kinds: NotFound
	// for the volume or the node; InUse when it is attached, to whichever node; Exhausted when the node can take no more;
	// Busy when the cloud refuses for now; Unavailable, and no other, when it is not known whether anything was begun.
	// ErrNameTaken when another disk has the name there.
	Attach(ctx context.Context, volume, node, name string) (began time.Time, err error)

	// Detach requests the end of an attachment, or of any attachment if the node is empty. Once the cloud has accepted the
	// request, it returns the attachment's age by the cloud's clock; 0 if the cloud does not say. It fails with
	// ErrNotAttached if the attachment does not exist, but need not while one is detaching. Kinds: NotFound for the
	// volume.
	Detach(ctx context.Context, volume, node string) (age time.Duration, err error)

	// Taken lists the device names that the node's disks have; none in a cloud without device names. Kinds: NotFound for
	// the node.
	Taken(ctx context.Context, node string) ([]string, error)
}
