package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/stowage-csi/stowage/tests/e2e/cluster/store"
	"github.com/stowage-csi/stowage/tests/vm/internal/image"
	"github.com/stowage-csi/stowage/tests/vm/internal/initrd"
	"github.com/stowage-csi/stowage/tests/vm/internal/qemu"
	"github.com/stowage-csi/stowage/tests/vm/internal/wire"
	"github.com/stowage-csi/stowage/tests/vm/internal/workspace"
)

// How long a guest may take to come up. With KVM it is a second or two, and if it does not there is another way.
const (
	bootLimitKVM = 20 * time.Second
	bootLimitTCG = 3 * time.Minute
)

func run(ctx context.Context, o options) (err error) {
	if err := o.check(); err != nil {
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
	if err := job.Write(guest.Share); err != nil {
		return err
	}
	say("prepared in %v", since(begun))
	r := newReport(os.Stdout)
	defer func() { say("%s; %v in all", r.outcome(), since(begun)) }()
	if err := boot(ctx, guest, r); err != nil {
		return errors.Join(err, r.cutOff())
	}
	return r.verdict(job)
}

// prepare makes the image and builds the tests, at the same time.
func prepare(ctx context.Context, o options, w *workspace.Workspace) (qemu.Config, wire.Job, error) {
	c := qemu.Config{Workspace: w, MemoryMiB: o.memory, Share: w.Path("share"), Initrd: w.Path("initrd")}
	var job wire.Job
	if err := os.Mkdir(c.Share, 0o755); err != nil {
		return c, job, err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		maker := image.Maker{
			Store:  &store.Store{Dir: cacheDir(), Out: os.Stderr, Label: "vm"},
			Source: filepath.Join(o.tree, "tests/vm/internal/image"),
		}
		made, err := maker.Make(ctx)
		c.Kernel, c.Disk = made.Kernel(), made.Disk()
		return err
	})
	group.Go(func() (err error) {
		init := w.Path("init")
		if err := o.goCommand(ctx, "build", "-trimpath", "-ldflags=-s -w", "-o", init, "./tests/vm/init"); err != nil {
			return err
		}
		if err := initrd.Write(c.Initrd, init); err != nil {
			return err
		}
		job, err = o.build(ctx, c.Share)
		return err
	})
	err := group.Wait()
	return c, job, err
}

// boot runs the job in a guest, with the best accelerator that works.
func boot(ctx context.Context, c qemu.Config, r *report) error {
	var problems []error
	for _, accel := range qemu.Candidates() {
		c.Accel = accel
		limit := bootLimitTCG
		if accel == qemu.KVM {
			limit = bootLimitKVM
		}
		r.booted, r.accel = time.Now(), accel
		g, err := qemu.Start(ctx, c)
		if err == nil {
			err = g.Wait(ctx, limit, r.take)
		}
		if !errors.Is(err, qemu.ErrNotUp) {
			return err
		}
		say("no guest comes up with %s", accel)
		problems = append(problems, fmt.Errorf("with %s: %w", accel, err))
	}
	return errors.Join(problems...)
}
