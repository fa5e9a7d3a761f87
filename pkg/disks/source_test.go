package disks_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stowage-csi/stowage/pkg/disks"
	"github.com/stowage-csi/stowage/pkg/disks/method"
	"github.com/stowage-csi/stowage/pkg/disks/report"
	"github.com/stowage-csi/stowage/tests/testfs"
)

// reader is an agent that has read a NodeStorage.
type reader struct {
	object     string
	generation int64
	isNewest   bool
}

// want passes on the wipe of a volume, under an id with the generation.
func (r reader) want(e *disks.Engine) error {
	return e.Want(report.Wanted{Deletions: remove("disk-a", fmt.Sprintf("d%d", r.generation), method.Zero),
		Source: report.Source{Object: r.object, Generation: r.generation, IsNewest: r.isNewest}})
}

// TestOlderAgent checks that of two agents on a node the one with an older cache changes nothing, not even in the next
// engine.
func TestOlderAgent(t *testing.T) {
	b := newBench(t, "devices: [{paths: [/dev/none]}]")
	e, stop := b.start(t)
	refused := func(want string, all ...reader) {
		t.Helper()
		for _, r := range all {
			if err := r.want(e); !errors.Is(err, report.ErrOlder) {
				t.Errorf("%+v is taken although it is old: %v", r, err)
			}
		}
		if s := e.State(t.Context(), ""); len(s.Deletions) != 1 || s.Deletions[0].ID != want {
			t.Errorf("wanted are %+v, want %s", s.Deletions, want)
		}
	}
	must(t, reader{"one", 5, false}.want(e))
	must(t, reader{"one", 5, false}.want(e))
	refused("d5", reader{"one", 4, false}, reader{"two", 9, false})
	must(t, reader{"one", 6, false}.want(e))
	refused("d6", reader{"one", 5, false})
	stop()
	e, _ = b.start(t)
	if err := (reader{"one", 5, false}).want(e); !errors.Is(err, report.ErrOlder) {
		t.Errorf("after a restart the older one is taken: %v", err)
	}
	must(t, e.Want(report.Wanted{Deletions: remove("disk-a", "d0", method.Zero)})) // of an earlier version
	refused("d0", reader{"one", 5, false})
	must(t, reader{"one", 4, true}.want(e)) // The cluster was restored from a backup.
	must(t, reader{"one", 4, false}.want(e))
	refused("d4", reader{"one", 3, false})
	must(t, reader{"two", 1, true}.want(e)) // The object was replaced.
	refused("d1", reader{"one", 99, false})
}

// TestRenamedNode checks that a disk with data is not Available under the new name of its node, and that the node finds
// it unchanged when it has its old name again.
func TestRenamedNode(t *testing.T) {
	e, _ := newBench(t, fmt.Sprintf("devices: [{paths: [%s]}]", testfs.Attach(t, image(t, 64*mib)))).start(t)
	v := await(t, e, "found", in(report.Available)).Volumes[0]
	told := func(object string, offers []report.Offer) {
		must(t, e.Want(report.Wanted{Offers: offers,
			Source: report.Source{Object: object, Generation: 1, IsNewest: true}}))
	}
	told("old", offer(v.Name, "a"))
	await(t, e, "offered", in(report.Offered))
	told("new", nil)
	await(t, e, "dirty under the new name", in(report.Dirty))
	told("old", offer(v.Name, "a"))
	await(t, e, "offered as before", in(report.Offered))
}
