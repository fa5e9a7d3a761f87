package backendtest

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// Harness describes a backend for the suite. Over fills in Definition, Open and Reopen.
type Harness struct {
	Definition backends.Definition

	// Open opens an empty backend, and closes it at the end of tb.
	Open func(tb testing.TB) *backends.Instance
	// Reopen closes the instance and opens another one over the same state. It is nil only for a backend whose state does
	// not outlive it.
	Reopen func(tb testing.TB, instance *backends.Instance) *backends.Instance

	// Spec returns a new valid Spec for small volumes. A clone or a restored volume gets it too, so the
	// capacity must be required and not limited, and leave room to be doubled. The suite sets Name
	// and Fingerprint itself.
	Spec func(name string) backends.Spec
	// SnapshotParameters is set as SnapshotSpec.Parameters and GroupSpec.Parameters.
	SnapshotParameters any

	// The rest is optional.

	// Nodes are nodes that volumes can be attached to, this one first. An Attacher needs two.
	Nodes []string
	// Modifications are changes that a Modifier can make to a volume of Spec.
	Modifications []Modification
	// Reserves says that CapacityReporter counts exactly what volumes may hold, to the byte: a new volume takes exactly
	// its capacity, until it is deleted. It is not for storage that is shared with others, nor for volumes that take room
	// as they are filled.
	Reserves bool
	// NamesStorage says that the parameters of Spec, and handles, name the storage, whatever topology is required, and
	// that a Prover proves nothing about storage on which it has created or found nothing yet.
	NamesStorage bool
	// Exports says that a Directory from Source stands for a server's export. It is for tests without that server: with
	// it, Source describes an Export.
	Exports bool
	// Simulated runs each check in a bubble of testing/synctest: waiting takes no time, and a busy machine changes
	// nothing. It is for backends whose cloud is in the same process.
	Simulated bool
	// Patience is the time limit for calls that should be prompt; two minutes if zero.
	Patience time.Duration
	// Secrets are texts that must not be in handles, attributes or errors, such as credentials in the
	// configuration.
	Secrets []string
	// Broken provokes failures that need help and returns the backend's error, which must be of the function's Kind in the
	// map.
	Broken map[backends.Kind]func(tb testing.TB, instance *backends.Instance) error
	// Lose are ways, by name, to take the storage of Spec's volumes away, for example by a configuration that no longer
	// names it. The backend must open all the same. Only a Harness that Over made can have them.
	Lose map[string]Loss
	// Apart opens a backend, like Open, with volumes that cannot be in one group of snapshots; nil for a GroupSnapshotter
	// that accepts any volumes together.
	Apart func(tb testing.TB) (instance *backends.Instance, volumes []string)
	// Damage makes a volume unwell. Without it the suite only checks that HealthReporter reports no issue.
	Damage func(tb testing.TB, instance *backends.Instance, handle string)
	// Write replaces the data on a volume that is attached to this node, and Read returns it; nil when nothing was written
	// yet. Without them the suite uses the Source, if that is a directory or an image file.
	Write func(tb testing.TB, instance *backends.Instance, attachment backends.Attachment, data []byte)
	Read  func(tb testing.TB, instance *backends.Instance, attachment backends.Attachment) []byte

	// reopenWith is Reopen with changed options, for one call. Over fills it in.
	reopenWith func(tb testing.TB, instance *backends.Instance, change func(*backends.Options)) *backends.Instance
}

// Loss takes storage away, by changing the options with which the backend is opened again or in any other way. The
// returned function undoes whatever the former options alone do not.
type Loss func(tb testing.TB, options *backends.Options) (restore func())

// Modification is a change to a volume's mutable parameters.
type Modification struct {
	Value any // what Definition.NewMutable returned, filled in
	// Seen reports whether the volume has the Value; nil if that is not visible.
	Seen func(tb testing.TB, instance *backends.Instance, handle string) bool
}

// Run checks that a backend fulfills the contract.
func Run(t *testing.T, h Harness) {
	t.Helper()
	h.check(t)
	var f backends.Features
	h.inTime(t, func(t *testing.T) { f = features(t, h) })
	for _, g := range groups(h, f) {
		t.Run(g.name, func(t *testing.T) {
			for _, c := range g.checks {
				t.Run(c.name, func(t *testing.T) { h.inTime(t, func(t *testing.T) { c.run(newWorld(t, h)) }) })
			}
		})
	}
}

// inTime runs a test in simulated or real time, as the Harness says.
func (h Harness) inTime(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	if h.Simulated {
		synctest.Test(t, test)
		return
	}
	test(t)
}

func (h Harness) check(tb testing.TB) {
	tb.Helper()
	if h.Definition.Name == "" || h.Open == nil || h.Spec == nil {
		tb.Fatal("the Harness needs at least Definition, Open and Spec")
	}
	if (h.Write == nil) != (h.Read == nil) {
		tb.Fatal("the Harness needs both Write and Read, or neither")
	}
	if len(h.Lose) > 0 && h.reopenWith == nil {
		tb.Fatal("the Harness has Lose, and so must be made by Over")
	}
}

// features opens the backend once to find out its features.
func features(tb testing.TB, h Harness) backends.Features {
	tb.Helper()
	w := newWorld(tb, h)
	if w.f.Attach != nil && len(h.Nodes) < 2 {
		tb.Fatal("the backend is an Attacher: Harness.Nodes must name two nodes, this one first")
	}
	tb.Logf("backend %q offers %q", h.Definition.Name, w.f.Names())
	return w.f
}
