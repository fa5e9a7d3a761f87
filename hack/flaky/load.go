package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// loadOnly runs the load beside something else, until it is interrupted.
func loadOnly(ctx context.Context) error {
	stop, err := load(ctx)
	if err != nil {
		return err
	}
	<-ctx.Done()
	stop()
	return nil
}

// load keeps two cores and a disk busy until stop is called.
func load(ctx context.Context) (stop func(), err error) {
	dir, err := os.MkdirTemp("/var/tmp", "flaky")
	if err != nil {
		return nil, fmt.Errorf("cannot make a directory for the load: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				for i := range 1_000_000 {
					n ^= i
				}
			}
		})
	}
	group.Go(func() {
		for block := make([]byte, 1<<20); ctx.Err() == nil; {
			if write(filepath.Join(dir, "file"), block) != nil {
				return // The disk is full: the tests will report that.
			}
		}
	})
	return func() {
		cancel()
		group.Wait()
		_ = os.RemoveAll(dir)
	}, nil
}

func write(path string, block []byte) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // Sync has reported any error.
	for range 64 {
		if _, err := f.Write(block); err != nil {
			return err
		}
	}
	return f.Sync()
}
