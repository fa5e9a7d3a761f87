package backendtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// Backends that are wrong about creation, errors and secrets.

type idempotentItself struct{ parts }

func (b idempotentItself) Create(ctx context.Context, spec backends.Spec) (*backends.Volume, error) {
	v, err := b.parts.Create(ctx, spec)
	if backends.Is(err, backends.Exists) {
		return b.Find(ctx, spec)
	}
	return v, err
}

// looksBeforeItCreates lets two callers find the name free before either of them continues.
type looksBeforeItCreates struct {
	parts
	looked  *atomic.Int32 // how many callers have found the name free
	two     chan struct{} // closed by the second of them
	handles *sync.Map
}

func (b looksBeforeItCreates) Create(ctx context.Context, spec backends.Spec) (*backends.Volume, error) {
	name := spec.Name
	if _, err := b.Find(ctx, spec); err == nil {
		return nil, backends.Errorf(backends.Exists, "there is a volume of that name")
	}
	if b.looked.Add(1) == 2 {
		close(b.two)
	}
	select {
	case <-b.two:
	case <-ctx.Done():
	}
	spec.Name += rand.Text()
	v, err := b.parts.Create(ctx, spec)
	if err != nil {
		return nil, err
	}
	b.handles.Store(name, v.Handle)
	return b.Get(ctx, v.Handle)
}

func (b looksBeforeItCreates) Find(ctx context.Context, spec backends.Spec) (*backends.Volume, error) {
	handle, ok := b.handles.Load(spec.Name)
	if !ok {
		return nil, backends.Errorf(backends.NotFound, "there is no volume of that name")
	}
	return b.Get(ctx, handle.(string))
}

type forgetsFingerprint struct{ parts }

func (b forgetsFingerprint) Get(ctx context.Context, handle string) (*backends.Volume, error) {
	v, err := b.parts.Get(ctx, handle)
	if v != nil {
		v.Fingerprint = ""
	}
	return v, err
}

type leaksWhatWasCancelled struct{ parts }

func (b leaksWhatWasCancelled) Create(ctx context.Context, spec backends.Spec) (*backends.Volume, error) {
	v, err := b.parts.Create(context.WithoutCancel(ctx), spec)
	if ctx.Err() != nil {
		return nil, backends.Errorf(backends.Unavailable, "given up: %w", ctx.Err())
	}
	return v, err
}

// leavesHalfAVolume takes longer than a request with a very short deadline.
type leavesHalfAVolume struct{ parts }

func (b leavesHalfAVolume) Create(ctx context.Context, spec backends.Spec) (*backends.Volume, error) {
	v, err := b.parts.Create(context.WithoutCancel(ctx), spec)
	if end, ok := ctx.Deadline(); ok && time.Until(end) < time.Second {
		<-ctx.Done()
	}
	if err != nil || ctx.Err() == nil {
		return v, err
	}
	source, err := b.Source(context.WithoutCancel(ctx), backends.Attachment{Handle: v.Handle, Type: backends.Mount})
	if err != nil {
		return nil, err
	}
	if err := errors.Join(os.Remove(source.(backends.Directory).Path),
		b.Release(context.WithoutCancel(ctx), v.Handle)); err != nil {
		return nil, err
	}
	return nil, backends.Errorf(backends.Unavailable, "given up half way: %w", ctx.Err())
}

type sanitisesNames struct{ parts }

func (b sanitisesNames) Create(ctx context.Context, spec backends.Spec) (*backends.Volume, error) {
	spec.Name = strings.ToLower(strings.TrimSpace(spec.Name))
	return b.parts.Create(ctx, spec)
}

type usesNamesAsPaths struct {
	parts
	dataDir string
}

func (b usesNamesAsPaths) Create(ctx context.Context, spec backends.Spec) (*backends.Volume, error) {
	v, err := b.parts.Create(ctx, spec)
	if err == nil && spec.Name == ".." {
		err = os.WriteFile(filepath.Join(b.dataDir, "..", "marker"), nil, 0o600)
	}
	return v, err
}

type ignoresTheLimit struct{ parts }

func (b ignoresTheLimit) Create(ctx context.Context, spec backends.Spec) (*backends.Volume, error) {
	spec.Capacity.LimitBytes = 0
	return b.parts.Create(ctx, spec)
}

func (b ignoresTheLimit) Expand(ctx context.Context, handle string,
	size backends.CapacityRange) (backends.Expansion, error) {
	size.LimitBytes = 0
	return b.parts.Expand(ctx, handle, size)
}

type checksTheSpecFirst struct{ parts }

func (b checksTheSpecFirst) Create(ctx context.Context, spec backends.Spec) (*backends.Volume, error) {
	if spec.Capacity.LimitBytes != 0 && spec.Capacity.LimitBytes < spec.Capacity.RequiredBytes {
		return nil, backends.Errorf(backends.OutOfRange, "no size is %s", spec.Capacity)
	}
	return b.parts.Create(ctx, spec)
}

type ignoresTopology struct{ parts }

func (b ignoresTopology) Create(ctx context.Context, spec backends.Spec) (*backends.Volume, error) {
	spec.Topology = backends.TopologyRequirement{}
	return b.parts.Create(ctx, spec)
}

type ignoresAccess struct{ parts }

func (b ignoresAccess) Create(ctx context.Context, spec backends.Spec) (*backends.Volume, error) {
	spec.Access = backends.Access{}
	return b.parts.Create(ctx, spec)
}

type plainErrors struct{ parts }

func (b plainErrors) Get(ctx context.Context, handle string) (*backends.Volume, error) {
	v, err := b.parts.Get(ctx, handle)
	if err != nil {
		return nil, os.ErrNotExist
	}
	return v, nil
}

type unknownErrors struct{ parts }

func (b unknownErrors) Attach(ctx context.Context, request backends.AttachRequest) (map[string]string, error) {
	attributes, err := b.parts.Attach(ctx, request)
	if err != nil {
		return nil, backends.Errorf(backends.Unknown, "%w", err)
	}
	return attributes, nil
}

type showsFingerprints struct{ parts }

func (b showsFingerprints) Create(ctx context.Context, spec backends.Spec) (*backends.Volume, error) {
	v, err := b.parts.Create(ctx, spec)
	if err != nil {
		return nil, backends.Errorf(backends.KindOf(err), "creating %+v: %w", spec, err)
	}
	return v, nil
}

type showsSecrets struct{ parts }

func (b showsSecrets) Create(ctx context.Context, spec backends.Spec) (*backends.Volume, error) {
	v, err := b.parts.Create(ctx, spec)
	if v != nil {
		v.Attributes["login"] = "root:pa55word"
	}
	return v, err
}

type logsEverything struct {
	parts
	log func(text string)
}

func (b logsEverything) Create(ctx context.Context, spec backends.Spec) (*backends.Volume, error) {
	b.log(fmt.Sprintf("create %+v", spec))
	return b.parts.Create(ctx, spec)
}

type returnsNothing struct{ parts }

func (b returnsNothing) Find(ctx context.Context, spec backends.Spec) (*backends.Volume, error) {
	v, err := b.parts.Find(ctx, spec)
	if backends.Is(err, backends.NotFound) {
		return nil, nil
	}
	return v, err
}

type sharesItsState struct {
	parts
	volumes *sync.Map
}

func (b sharesItsState) Get(ctx context.Context, handle string) (*backends.Volume, error) {
	v, err := b.parts.Get(ctx, handle)
	if err != nil {
		return nil, err
	}
	kept, _ := b.volumes.LoadOrStore(handle, v)
	copied := *kept.(*backends.Volume)
	return &copied, nil
}

// devicesOfAnySize has devices, and ignores the size of their filesystems.
type devicesOfAnySize struct{ parts }

func (b devicesOfAnySize) Source(ctx context.Context, attachment backends.Attachment) (backends.Source, error) {
	attachment.Type = backends.Block
	return b.parts.Source(ctx, attachment)
}
