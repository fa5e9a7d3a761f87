package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestLogsOfEarlierRunsAreKept starts more runs than are kept, each of which writes a log.
func TestLogsOfEarlierRunsAreKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ci")
	const runs = remembered + 3
	for n := range runs {
		if err := makeLogs(dir, time.Unix(int64(n), 0)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "test.log"), fmt.Append(nil, n), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if now, err := os.ReadFile(filepath.Join(dir, "test.log")); err != nil || string(now) != fmt.Sprint(runs-1) {
		t.Errorf("the log of this run is %q, %v", now, err)
	}
	kept, err := filepath.Glob(filepath.Join(dir, "earlier", "*", "test.log"))
	if err != nil || len(kept) != remembered {
		t.Fatalf("got the logs %q, %v, want %d", kept, err, remembered)
	}
	if last, err := os.ReadFile(kept[remembered-1]); err != nil || string(last) != fmt.Sprint(runs-2) {
		t.Errorf("the newest of the earlier logs is %q, %v, want that of the last run", last, err)
	}
}
