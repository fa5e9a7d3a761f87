package main

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// minFiles is the least that a driver is given: with fewer it serves, and fails under a load that is usual.
const minFiles = 256

// limitFiles bounds how many files this process, and each program that it runs, may have open, also for whoever could
// raise it again. A bound that is lower already stays. Kubernetes has no field for this, and runtimes often leave it at
// a million. With 0 nothing changes.
func limitFiles(bound uint64) error {
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &now); err != nil || bound == 0 {
		return err
	}
	bound = min(bound, now.Max)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: bound, Max: bound}); err != nil {
		return fmt.Errorf("--max-open-files: the bound cannot be %d: %w", bound, err)
	}
	return nil
}
