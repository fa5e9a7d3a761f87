package main

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/stowage-csi/stowage/tests/vm/internal/boot"
	"github.com/stowage-csi/stowage/tests/vm/internal/qemu"
	"github.com/stowage-csi/stowage/tests/vm/internal/wire"
	"github.com/stowage-csi/stowage/tests/vm/internal/workspace"
)

func run(ctx context.Context, o options) (err error) {
	if err := boot.Check(); err != nil {
		return err
	}
	w, err := workspace.New(os.TempDir())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Remove()) }()
	begun := time.Now()
	guest, job, err := prepare(ctx, o, w)
	if err != nil {
		return err
	}
	kernel, err := release(guest.Kernel)
	if err != nil {
		return err
	}
	say("prepared in %v; the guest's kernel is %s", since(begun), kernel)
	r := newReport(os.Stdout)
	defer func() { say("%s; %v in all", r.outcome(), since(begun)) }()
	if err := runAll(ctx, guest, job, r); err != nil {
		return errors.Join(err, r.cutOff())
	}
	return r.verdict(job)
}

// runAll runs the programs in a guest, and in a new one after each that was killed.
func runAll(ctx context.Context, guest qemu.Config, job wire.Job, r *report) error {
	for {
		if err := (wire.Job{Programs: job.Programs[r.ended:]}).Write(guest.Share); err != nil {
			return err
		}
		err := boot.Run(ctx, guest, r.trying, r.take)
		if !errors.Is(err, errSpoiled) {
			return err
		}
		say("%v", err)
		if r.ended == len(job.Programs) {
			return nil
		}
		r.accel = "" // The next guest tries every accelerator again.
	}
}

// prepare prepares the guest and builds the tests, concurrently.
func prepare(ctx context.Context, o options, w *workspace.Workspace) (guest qemu.Config, job wire.Job, err error) {
	tests := w.Path("tests")
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		guest, err = boot.Prepare(ctx, o.tree, w, os.Stderr)
		return err
	})
	group.Go(func() (err error) {
		job, err = o.build(ctx, tests)
		return err
	})
	if err = group.Wait(); err == nil {
		guest.MemoryMiB, guest.Share = o.memory, tests
	}
	return guest, job, err
}
