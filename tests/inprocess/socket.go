package inprocess

import (
	"os"
	"testing"
)

func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "stowage-") //nolint:usetesting // t.TempDir holds the test's name: too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}
