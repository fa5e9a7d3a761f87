package main

import (
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestTheGateLeavesOutTheQuarantine checks that every step of the gate that runs tests leaves out the tests on the
// list, and that the long form runs them.
func TestTheGateLeavesOutTheQuarantine(t *testing.T) {
	for _, s := range gate() {
		if s.tests == 0 {
			continue
		}
		commands, err := exec.CommandContext(t.Context(), "bash", "-c", "cd ../.. && QUARANTINE=the/list "+s.command+
			" -n").Output()
		if err != nil || !strings.Contains(string(commands), "-quarantine 'the/list'") {
			t.Errorf("%s runs what the list names: %v\n%s", s.name, err, commands)
		}
	}
	r, out := newRunner(t)
	r.one(t.Context(), []step{
		{name: "gate", command: `test "$QUARANTINE" = hack/quarantine`, limit: 2 * time.Minute},
		{name: "long", command: `test -z "$QUARANTINE"`, limit: 2 * time.Minute, long: true},
	})
	if err := r.finish(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
