package adversary

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
)

// use attaches, stages and publishes a volume and reads its contents, as the kubelet and then a pod do.
func (a *actor) use(s Step, v *volume, company bool) {
	a.own.Lock()
	v.used = true
	var refusals []codes.Code
	if v.reading && v.cut {
		refusals = []codes.Code{codes.InvalidArgument, codes.FailedPrecondition}
	}
	a.own.Unlock()
	var published map[string]string
	for _, c := range []struct {
		name string
		send func(ctx context.Context) error
	}{
		{"ControllerPublishVolume", func(ctx context.Context) error {
			response, err := a.controls().ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{
				VolumeId: v.id, NodeId: a.setup.node(), VolumeCapability: v.capability(), VolumeContext: v.context,
			})
			a.own.Lock()
			defer a.own.Unlock()
			published = response.GetPublishContext()
			return err
		}},
		{"NodeStageVolume", func(ctx context.Context) error {
			if err := os.MkdirAll(a.staging(v), 0o755); err != nil {
				return err
			}
			_, err := a.uses().NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{
				VolumeId: v.id, StagingTargetPath: a.staging(v), VolumeCapability: v.capability(), VolumeContext: v.context,
				PublishContext: published,
			})
			return err
		}},
		{"NodePublishVolume", func(ctx context.Context) error {
			if err := os.MkdirAll(filepath.Dir(a.target(v)), 0o755); err != nil {
				return err
			}
			_, err := a.uses().NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{
				VolumeId: v.id, StagingTargetPath: a.staging(v), TargetPath: a.target(v), VolumeCapability: v.capability(),
				VolumeContext:  v.context,
				PublishContext: published,
			})
			return err
		}},
	} {
		if c.name == "ControllerPublishVolume" && !a.setup.Attach {
			continue
		}
		if strings.HasPrefix(c.name, "Node") && a.setup.Alone {
			continue
		}
		r := a.requestFor(s, v, c.name, company, refusals...)
		if !v.formatted {
			r.disk = nil // A tool formats it, and no tool can be started while a server is silent (docs/design/007-time.md).
		}
		r.enters = !a.setup.Classes[v.class].Sized // A sparse device finds no room for its data.
		if !a.simply(r, c.send) {
			return
		}
	}
	v.cut, v.formatted = v.cut && v.reading, true
	a.read(v)
	a.sized(v)
}

// takesDown makes a call that only frees and has no result, and reports whether it succeeded.
func (a *actor) takesDown(s Step, v *volume, rpc string, company bool, send func(ctx context.Context) error) bool {
	r := a.requestFor(s, v, rpc, company)
	r.frees = true
	return a.simply(r, send)
}

// simply makes a call without a result, and reports whether it succeeded.
func (a *actor) simply(r request, send func(ctx context.Context) error) bool {
	r.send = func(ctx context.Context) (string, error) { return "", send(ctx) }
	return a.ask(r) == nil
}

// leave unpublishes, unstages and detaches a volume. The driver's files and mounts must be gone then.
func (a *actor) leave(s Step, v *volume, company bool) {
	ok := (a.setup.Alone || a.takesDown(s, v, "NodeUnpublishVolume", company, func(ctx context.Context) error {
		_, err := a.uses().NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: v.id, TargetPath: a.target(v)})
		return err
	}) && a.gone(a.target(v)) && a.takesDown(s, v, "NodeUnstageVolume", company, func(ctx context.Context) error {
		_, err := a.uses().NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: v.id,
			StagingTargetPath: a.staging(v)})
		return err
	})) && (!a.setup.Attach || a.takesDown(s, v, "ControllerUnpublishVolume", company,
		func(ctx context.Context) error {
			_, err := a.controls().ControllerUnpublishVolume(ctx,
				&csi.ControllerUnpublishVolumeRequest{VolumeId: v.id, NodeId: a.setup.node()})
			return err
		}))
	if !ok {
		return
	}
	for _, dir := range []string{a.staging(v), filepath.Dir(a.target(v))} {
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			a.blame("gone means gone: after it was unstaged, %s is not empty: %v", dir, err)
		}
	}
	a.own.Lock()
	defer a.own.Unlock()
	v.used = false
}

func (a *actor) gone(path string) bool {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		a.blame("gone means gone: %s is there after it was unpublished (%v)", path, err)
		return false
	}
	return true
}

// put writes one version to a volume.
func (a *actor) put(v *volume, name string, sync bool, id uint64) error {
	if a.cloud != nil {
		return a.cloud.put(v.id, name, id)
	}
	return put(a.target(v), name, v.raw, sync, id)
}

// look reads the contents of a volume.
func (a *actor) look(v *volume) (vector, error) {
	if a.cloud != nil {
		return a.cloud.look(v.id)
	}
	return look(a.target(v), v.raw)
}

// read checks the contents of a volume. The first read of a copy decides its contents from then on.
func (a *actor) read(v *volume) {
	found, err := a.look(v)
	if err != nil {
		a.blame("acknowledged data: %s cannot be read, or is not what anybody wrote: %v", v, err)
		return
	}
	if v.contents == nil {
		if err := v.origin.is(found); err != nil {
			a.blame("a copy is of one instant: %s: %v", v, err)
		}
		a.own.Lock()
		v.contents = newContents(found)
		a.own.Unlock()
		return
	}
	if err := v.contents.now(found); err != nil {
		a.blame("acknowledged data: %s: %v", v, err)
	}
}

// sized checks that a volume's user gets the acknowledged size, if sizes are enforced. A filesystem may keep a part for
// itself, and more of a small one.
func (a *actor) sized(v *volume) {
	if !a.setup.Classes[v.class].Sized || a.setup.Alone {
		return
	}
	size, err := size(a.target(v), v.raw)
	const own = 2 << 20 // bytes that a filesystem may keep for itself however small it is: a journal, tables
	if least := max(0, v.bytes-own) * 7 / 10; err != nil || size < least || v.raw && size < v.bytes {
		a.blame("acknowledged size: %s has %d bytes for its user, and %d were acknowledged (%v)", v, size, v.bytes, err)
	}
}

func size(target string, raw bool) (int64, error) {
	if raw {
		device, err := os.Open(target)
		if err != nil {
			return 0, err
		}
		defer device.Close() //nolint:errcheck // it was only asked
		return device.Seek(0, io.SeekEnd)
	}
	var s unix.Statfs_t
	err := unix.Statfs(target, &s)
	return int64(s.Blocks) * s.Bsize, err
}

// write writes versions of files, one after the other, or fills a volume.
func (a *actor) write(s Step, v *volume) {
	names, sync := max(s.Names, 6), true
	if s.Op == Fill {
		names, sync = s.Count, v.raw
	}
	if v.contents == nil {
		return // it could not be read
	}
	var begun []func()
	for n := range s.Count {
		name := fmt.Sprintf("f%d", n%names)
		switch {
		case v.raw:
			name = fmt.Sprintf("r%d", n%extents)
		case s.Op == Fill && s.Count < 50:
			name = fmt.Sprintf("b%d", n%names)
		}
		id := a.serials.last.Add(1)
		done := v.contents.begin(name, id)
		if err := a.put(v, name, sync, id); err != nil {
			if !a.mayFail(v) {
				a.blame("acknowledged data: %s cannot be written to: %v", v, err)
			}
			return
		}
		if begun = append(begun, done); sync {
			done()
			<-time.After(200 * time.Microsecond)
		}
	}
	if !sync && (a.cloud != nil || flush(a.target(v)) == nil) {
		for _, done := range begun {
			done()
		}
	}
}
