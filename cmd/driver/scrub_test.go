package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/tests/stall"
)

// TestScrubCutShort ends the process of a scrub in its midst: the recycler takes exit code 0 for an empty volume.
func TestScrubCutShort(t *testing.T) {
	server := stall.Serve(t)
	for i := range 2000 {
		if err := os.WriteFile(filepath.Join(server.Real, strconv.Itoa(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	code, said := endedAt(t, server, stall.Change, 10, "scrub", "--path="+server.Dir)
	if left, err := os.ReadDir(server.Real); err != nil || len(left) == 0 {
		t.Fatalf("the scrub was not cut short: %v, %v", left, err)
	}
	if code != 1 || !strings.Contains(said, "was cut short") {
		t.Errorf("a scrub that left files ended with code %d and said %q, want 1 and that it was cut short", code, said)
	}
}
