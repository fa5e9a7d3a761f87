package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/node/ownership"
)

// group is the new group of the files.
const group = 4711

// method is a way to give the files below a root to the group.
type method struct {
	name  string
	apply func(ctx context.Context, root string) error
	// whole is set if it must have the same result as the kubelet's method.
	whole bool
}

// methods returns all methods; the others are compared with the first.
func methods() []method {
	return []method{
		{"kubelet", func(ctx context.Context, root string) error { return kubelet(ctx, root, group) }, true},
		{"chown -R", func(ctx context.Context, root string) error {
			return command(ctx, "chown", "-R", fmt.Sprint(":", group), root)
		}, false},
		{"careful", ours(ownership.Request{}), true},
		{"exclusive", ours(ownership.Request{Exclusive: true}), true},
	}
}

func ours(request ownership.Request) func(context.Context, string) error {
	return func(ctx context.Context, root string) error {
		request := request
		request.Path, request.GID = root, group
		_, err := ownership.Apply(ctx, request)
		return err
	}
}

// cost is the cost of a walk.
type cost struct{ wall, cpu time.Duration }

// costs are the costs of one method.
type costs struct{ cold, warm, again, mismatch cost }

// bench measures all methods on one filesystem and shape.
type bench struct {
	space   *workspace
	opts    options
	fs      string
	shape   shape
	log     io.Writer
	methods []method
	costs   []costs // of each method
	table   string  // the file with the result of the kubelet's method
}

func (b *bench) run(ctx context.Context) error {
	b.costs = make([]costs, len(b.methods))
	b.table = filepath.Join(b.space.dir, fmt.Sprintf("%s-%s.table", b.fs, b.shape))
	image := b.space.image(fmt.Sprintf("%s-%s", b.fs, b.shape))
	fmt.Fprintf(b.log, "%s, %s: making %d files\n", b.fs, b.shape, b.opts.files)
	if err := b.plant(ctx, image); err != nil {
		return err
	}
	for range b.opts.rounds {
		for i, m := range b.methods {
			fmt.Fprintf(b.log, "%s, %s: %s\n", b.fs, b.shape, m.name)
			if err := b.measure(ctx, image, i); err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
		}
	}
	return os.Remove(image)
}

func (b *bench) plant(ctx context.Context, image string) error {
	if err := b.space.format(ctx, b.fs, image, b.opts.files); err != nil {
		return err
	}
	return b.mounted(ctx, image, func() error { return plant(ctx, b.space.root(), b.shape, b.opts.files) })
}

// mounted calls do while an image is mounted.
func (b *bench) mounted(ctx context.Context, image string, do func() error) error {
	if err := b.space.mount(ctx, b.fs, image); err != nil {
		return err
	}
	err := do()
	if e := b.space.unmount(ctx); err == nil {
		err = e
	}
	return err
}

// measure measures one method once, in all cases.
func (b *bench) measure(ctx context.Context, pristine string, i int) error {
	m, c := b.methods[i], &b.costs[i]
	cold, err := b.space.copyOf(ctx, pristine)
	if err != nil {
		return err
	}
	if err := forget(cold); err != nil {
		return err
	}
	if err := b.mounted(ctx, cold, func() error { return b.timed(ctx, m, &c.cold) }); err != nil {
		return err
	}
	if err := b.mounted(ctx, cold, func() error { return b.mismatch(ctx, &c.mismatch) }); err != nil {
		return err
	}
	if err := os.Remove(cold); err != nil {
		return err
	}
	warm, err := b.space.copyOf(ctx, pristine)
	if err != nil {
		return err
	}
	if err := b.mounted(ctx, warm, func() error { return b.warm(ctx, m, c) }); err != nil {
		return err
	}
	return os.Remove(warm)
}

// warm measures a first and a second walk with all inodes in memory, and checks the result.
func (b *bench) warm(ctx context.Context, m method, c *costs) error {
	if err := tabulate(ctx, b.space.root(), io.Discard); err != nil {
		return err
	}
	if err := b.timed(ctx, m, &c.warm); err != nil {
		return err
	}
	if err := b.timed(ctx, m, &c.again); err != nil || !m.whole {
		return err
	}
	return b.compare(ctx)
}

// timed keeps the lowest of the method's costs.
func (b *bench) timed(ctx context.Context, m method, best *cost) error {
	begin, used := time.Now(), cpuTime()
	if err := m.apply(ctx, b.space.root()); err != nil {
		return err
	}
	if took := (cost{time.Since(begin), cpuTime() - used}); best.wall == 0 || took.wall < best.wall {
		*best = took
	}
	return nil
}

// mismatch measures OnRootMismatch on a volume whose root has the right owner and permissions.
func (b *bench) mismatch(ctx context.Context, best *cost) error {
	return b.timed(ctx, method{apply: ours(ownership.Request{Policy: ownership.OnRootMismatch})}, best)
}

// cpuTime returns the CPU time that this process and its children have used.
func cpuTime() (used time.Duration) {
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var usage unix.Rusage
		if unix.Getrusage(who, &usage) == nil { // it fails only for invalid arguments (getrusage(2))
			used += time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
		}
	}
	return used
}
