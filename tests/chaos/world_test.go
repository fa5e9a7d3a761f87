package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/backendtest"
	"github.com/stowage-csi/stowage/pkg/node"
)

// world is a node with one volume, all below one directory.
type world struct {
	scenario
	root  string
	plant string // the planted defect; empty for none

	found place // the location of the volume, once it is known
}

func (w *world) path(elements ...string) string {
	return filepath.Join(append([]string{w.root}, elements...)...)
}

func (w *world) stagingPath() string { return w.path("staging") }

func (w *world) targetPath() string { return w.path("pods", "target") }

// operator is the tested service: node.Service, or one with a planted defect.
type operator interface {
	Stage(ctx context.Context, request node.StageRequest) error
	Publish(ctx context.Context, request node.PublishRequest) error
	Expand(ctx context.Context, request node.ExpandRequest) (int64, error)
	Unpublish(ctx context.Context, volume, targetPath string) error
	Unstage(ctx context.Context, volume, stagingPath string) error
}

// service creates a new Service on the world's state, as a new process does. It also returns a function that closes its
// backend.
func (w *world) service(ctx context.Context) (s operator, closed func() error, err error) {
	instance, err := w.backend(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("open the backend: %w", err)
	}
	service, err := node.New(ctx, node.Config{
		Backend: instance.Node, Features: backends.Resolve(instance.Controller, instance.Node), NodeID: "node",
		StateDir: w.path("state"), DelegateFSGroup: true,
	})
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("start the service: %w", err), backendtest.Close(ctx, instance))
	}
	return w.planted(service), func() error { return backendtest.Close(ctx, instance) }, nil
}

// do makes one call.
func (w *world) do(ctx context.Context, s operator, op operation) error {
	volume := w.handle()
	use := node.Use{Type: w.accessType(), Mode: backends.SingleNodeWriter, FSType: w.fsType}
	switch op {
	case stage:
		return s.Stage(ctx, node.StageRequest{Volume: volume, StagingPath: w.stagingPath(), Use: use, MountGroup: w.group})
	case publish:
		return s.Publish(ctx, node.PublishRequest{Volume: volume, StagingPath: w.stagingPath(), TargetPath: w.targetPath(),
			Use: use, ReadOnly: w.readOnly})
	case expand:
		size, err := s.Expand(ctx, node.ExpandRequest{Volume: volume, Path: w.stagingPath(),
			Size: backends.CapacityRange{RequiredBytes: w.grownMiB << 20}})
		if err == nil && size != w.grownMiB<<20 {
			return fmt.Errorf("expanded to %d bytes, want %d MiB", size, w.grownMiB)
		}
		return err
	case unpublish:
		return s.Unpublish(ctx, volume, w.targetPath())
	case unstage:
		return s.Unstage(ctx, volume, w.stagingPath())
	}
	return fmt.Errorf("no operation %q", op)
}

// callTime limits an undisturbed call.
const callTime = 2 * time.Minute

// call makes one call with a new Service.
func (w *world) call(ctx context.Context, op operation) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	if err := w.drawCurtain(); err != nil {
		return err
	}
	service, closed, err := w.service(ctx)
	if err != nil {
		return err
	}
	err = w.do(ctx, service, op)
	if failed := closed(); err == nil && failed != nil {
		return fmt.Errorf("close the backend: %w", failed)
	}
	return err
}

// calls makes several calls, one after the other.
func (w *world) calls(ctx context.Context, ops []operation) error {
	for _, op := range ops {
		if err := w.call(ctx, op); err != nil {
			return fmt.Errorf("%s: %w", op, err)
		}
	}
	return nil
}

// copySparse copies a file without its zeros.
func copySparse(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }() // open for reading only
	target, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { _ = target.Close() }() // on a tmpfs no data is written late
	info, err := source.Stat()
	if err != nil {
		return err
	}
	for at := int64(0); ; {
		from, err := unix.Seek(int(source.Fd()), at, unix.SEEK_DATA)
		if err != nil {
			break // ENXIO: only a hole up to the end
		}
		if at, err = unix.Seek(int(source.Fd()), from, unix.SEEK_HOLE); err != nil {
			return err
		}
		if err := copyRange(target, source, from, at); err != nil {
			return err
		}
	}
	return target.Truncate(info.Size())
}

// copyRange copies the nonzero blocks of a range.
func copyRange(target io.WriterAt, source io.ReaderAt, from, to int64) error {
	var zero [64 << 10]byte
	block := make([]byte, len(zero))
	for ; from < to; from += int64(len(block)) {
		n, err := source.ReadAt(block[:min(int64(len(block)), to-from)], from)
		if err != nil && err != io.EOF {
			return err
		}
		if string(block[:n]) == string(zero[:n]) {
			continue
		}
		if _, err := target.WriteAt(block[:n], from); err != nil {
			return err
		}
	}
	return nil
}
