package adversary

import (
	"testing"

	"github.com/stowage-csi/stowage/tests/orchestrator"
)

// TestWritesFailBesideTheirOwnFaultOnly lets users' own writes fail after a fault: only a fault of the volume's disk is
// a reason.
func TestWritesFailBesideTheirOwnFaultOnly(t *testing.T) {
	for name, test := range map[string]struct {
		fault  Fault
		blamed string
	}{
		"the driver was killed":         {Fault{Kind: "kill"}, "acknowledged data"},
		"a record was broken":           {Fault{Kind: "newer", On: 0}, "acknowledged data"},
		"the state directory was full":  {Fault{Kind: "full-state", On: 0}, "acknowledged data"},
		"another disk failed":           {Fault{Kind: "eio", On: 1}, "acknowledged data"},
		"its own disk failed":           {Fault{Kind: "eio", On: 0}, ""},
		"its own disk was full":         {Fault{Kind: "full", On: 0}, ""},
		"the server denied all clients": {Fault{Kind: "denied", On: 1}, ""},
	} {
		w := &world{setup: overLocal("ext4"), disks: []*disk{{}, {}, {}}, tally: NewTally(),
			workspace: &orchestrator.Workspace{Dir: t.TempDir()}}
		_ = w.undergo(test.fault, func(Fault) (func() error, error) { return nil, nil })
		v := &volume{name: "v-1", used: true, contents: newContents(nil)}
		newActor(w, 0, nil).write(Step{Op: Write, Count: 1}, v) // It is not mounted.
		if got := class(append(w.wrong, "")[0]); got != test.blamed {
			t.Errorf("%s: got %q, want %q", name, got, test.blamed)
		}
	}
}
