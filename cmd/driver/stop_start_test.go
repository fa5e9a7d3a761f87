package main

import (
	"path/filepath"
	"testing"

	"github.com/stowage-csi/stowage/tests/stall"
)

// TestStopWhileStarting stops drivers before they serve: that is no failure.
func TestStopWhileStarting(t *testing.T) {
	server := stall.Serve(t)
	for _, request := range []stall.Request{stall.Lookup, stall.Open, stall.List} {
		for _, backend := range []string{"local", "memory"} {
			dir := t.TempDir()
			code, said := endedAt(t, server, request, 1, "standalone", "--backend="+backend,
				"--endpoint=unix://"+filepath.Join(dir, "s"), "--data-dir="+filepath.Join(server.Dir, filepath.Base(dir)))
			if code != 0 {
				t.Errorf("%s, stopped at %s, ended with code %d and said %q", backend, request, code, said)
			}
		}
	}
}
