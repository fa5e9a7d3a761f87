package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// remembered is the number of earlier runs whose logs are kept.
const remembered = 10

// makeLogs makes the directory of the logs. It moves those of the last run aside: a run that repeats one step of it
// must not remove the reason for doing so.
func makeLogs(dir string, now time.Time) error {
	earlier := filepath.Join(dir, "earlier")
	if err := os.MkdirAll(earlier, 0o750); err != nil {
		return fmt.Errorf("cannot make a directory for the logs: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("cannot look for the logs of the last run: %w", err)
	}
	into := filepath.Join(earlier, now.UTC().Format("20060102T150405.000000000"))
	for _, e := range entries {
		if e.Name() == "earlier" {
			continue
		}
		if err := os.MkdirAll(into, 0o750); err != nil {
			return fmt.Errorf("cannot keep the logs of the last run: %w", err)
		}
		if err := os.Rename(filepath.Join(dir, e.Name()), filepath.Join(into, e.Name())); err != nil {
			return fmt.Errorf("cannot keep the logs of the last run: %w", err)
		}
	}
	return forget(earlier)
}

// forget removes the logs of all but the newest runs.
func forget(earlier string) error {
	runs, err := os.ReadDir(earlier) // Their names are times, in order.
	if err != nil {
		return fmt.Errorf("cannot look for the logs of earlier runs: %w", err)
	}
	for _, run := range runs[:max(0, len(runs)-remembered)] {
		if err := os.RemoveAll(filepath.Join(earlier, run.Name())); err != nil {
			return fmt.Errorf("cannot remove old logs: %w", err)
		}
	}
	return nil
}
