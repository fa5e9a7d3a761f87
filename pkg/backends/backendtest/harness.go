package backendtest

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// Harness is what the suite must know of a backend. Over fills in Definition, Open and Reopen.
type Harness struct {
	Definition backends.Definition

	// Open starts a backend with nothing in it, and closes it at the end of tb.
	Open func(tb testing.TB) *backends.Instance
	// Reopen closes the instance and opens another one over the same state. Nil for a backend whose state
	// does not outlive it; there is no other excuse.
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
	// Reserves says that CapacityReporter counts what volumes may hold, to the byte, and nothing else: a
	// new volume takes exactly its capacity, until it is deleted. It is not for storage that is shared
	// with others, nor for volumes that take room as they are filled.
	Reserves bool
	// NamesStorage says that the parameters of Spec, and handles, name the storage, whatever topology is required, and
	// that a Prover proves nothing of storage on which it has made or found nothing yet.
	NamesStorage bool
	// Exports says that a Directory which Source describes stands for what a server would export. It is for tests
	// without that server: over it Source describes an Export.
	Exports bool
	// Simulated runs each check in a bubble of testing/synctest: waiting takes no time, and a machine that is busy with
	// something else changes nothing. It is for backends whose cloud is in the same process.
	Simulated bool
	// Patience is how long something may take that ought to be prompt; two minutes if zero.
	Patience time.Duration
	// Secrets are texts that must not be in handles, attributes or errors, such as credentials in the
	// configuration.
	Secrets []string
	// Broken provokes failures that need help and returns what the backend answered: the error must be
	// of the Kind under which the function is entered.
	Broken map[backends.Kind]func(tb testing.TB, instance *backends.Instance) error
	// Lose are ways, by name, to take the storage of Spec's volumes away, such as a configuration that names it no more.
	// The backend must open all the same. A Harness that Over made can have them.
	Lose map[string]Loss
	// Apart opens a backend, like Open, with volumes that cannot be in one group of snapshots; nil for a GroupSnapshotter
	// that takes any together.
	Apart func(tb testing.TB) (instance *backends.Instance, volumes []string)
	// Damage makes a volume unwell; with it HealthReporter is checked by more than its silence.
	Damage func(tb testing.TB, instance *backends.Instance, handle string)
	// Write puts data on a volume that is attached to this node, in place of what is there, and Read
	// returns it; nil when nothing was written yet. Without them the suite uses what Source describes,
	// if that is a directory or an image file.
	Write func(tb testing.TB, instance *backends.Instance, attachment backends.Attachment, data []byte)
	Read  func(tb testing.TB, instance *backends.Instance, attachment backends.Attachment) []byte

	// reopenWith is Reopen with other options, this once. Over fills it in.
	reopenWith func(tb testing.TB, instance *backends.Instance, change func(*backends.Options)) *backends.Instance
}

// Loss takes storage away, by changing the options with which the backend is opened again or in any other way. What it
// returns brings back what the former options do not.
type Loss func(tb testing.TB, options *backends.Options) (restore func())

// Modification is a change to a volume's mutable parameters.
type Modification struct {
	Value any // what Definition.NewMutable returned, filled in
	// Seen reports whether the volume is as Value asks; nil when that cannot be seen.
	Seen func(tb testing.TB, instance *backends.Instance, handle string) bool
}

// Run checks that a backend keeps the promises of the contract.
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

// inTime runs a test in the time that the backend is to live in.
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

// features opens the backend once to see what there is to check.
func features(tb testing.TB, h Harness) backends.Features {
	tb.Helper()
	w := newWorld(tb, h)
	if w.f.Attach != nil && len(h.Nodes) < 2 {
		tb.Fatal("the backend is an Attacher: Harness.Nodes must name two nodes, this one first")
	}
	tb.Logf("backend %q offers %q", h.Definition.Name, w.f.Names())
	return w.f
}
