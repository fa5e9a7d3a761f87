package boot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/stowage-csi/stowage/tests/e2e/cluster/store"
	"github.com/stowage-csi/stowage/tests/vm/internal/image"
	"github.com/stowage-csi/stowage/tests/vm/internal/initrd"
	"github.com/stowage-csi/stowage/tests/vm/internal/qemu"
	"github.com/stowage-csi/stowage/tests/vm/internal/wire"
	"github.com/stowage-csi/stowage/tests/vm/internal/workspace"
)

// The limits for a guest to boot. With KVM it takes a second or two; if KVM does not work, TCG is tried.
const (
	limitKVM = 20 * time.Second
	limitTCG = 3 * time.Minute
)

// DefaultMemory is enough for all suites, in MiB.
const DefaultMemory = 2048

// Check returns the reason if this machine cannot boot a guest.
func Check() error {
	switch {
	case runtime.GOOS != "linux" || runtime.GOARCH != "amd64":
		return fmt.Errorf("the guest is an amd64 Linux, and so must this machine be: it is %s/%s", runtime.GOOS,
			runtime.GOARCH)
	case os.Geteuid() != 0:
		return errors.New("the guest's disk is made by root: its files are root's")
	}
	return nil
}

// Prepare creates the guest's image, its first process and an empty shared folder. It writes progress to out.
func Prepare(ctx context.Context, tree Tree, w *workspace.Workspace, out io.Writer) (qemu.Config, error) {
	c := qemu.Config{Workspace: w, MemoryMiB: DefaultMemory, Share: w.Path("share"), Initrd: w.Path("initrd")}
	if err := os.Mkdir(c.Share, 0o755); err != nil {
		return c, err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		maker := image.Maker{
			Store:  &store.Store{Dir: CacheDir(), Out: out, Label: "vm"},
			Source: filepath.Join(string(tree), "tests/vm/internal/image"),
		}
		made, err := maker.Make(ctx)
		c.Kernel, c.Disk = made.Kernel(), made.Disk()
		return err
	})
	group.Go(func() error {
		first := w.Path("init")
		if err := tree.Build(ctx, "./tests/vm/init", first); err != nil {
			return err
		}
		return initrd.Write(c.Initrd, first)
	})
	err := group.Wait()
	return c, err
}

// Run boots a guest and calls take with its frames until it has powered off. It calls trying before each attempt to run
// the guest.
func Run(ctx context.Context, c qemu.Config, trying func(qemu.Accel), take func(wire.Frame) error) error {
	var problems []error
	for _, accel := range qemu.Candidates() {
		c.Accel = accel
		limit := limitTCG
		if accel == qemu.KVM {
			limit = limitKVM
		}
		trying(accel)
		g, err := qemu.Start(ctx, c)
		if err == nil {
			err = g.Wait(ctx, limit, take)
		}
		if !errors.Is(err, qemu.ErrNotUp) {
			return err
		}
		problems = append(problems, fmt.Errorf("with %s: %w", accel, err))
	}
	return errors.Join(problems...)
}
