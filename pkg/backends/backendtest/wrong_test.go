package backendtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// parts is a backend that a wrong one is made of, by embedding it and breaking one promise.
type parts struct {
	backends.Backend
	backends.NodeBackend
	backends.Attacher
	backends.Expander
	backends.Cloner
	backends.Modifier
	backends.Lister
	backends.CapacityReporter
	backends.HealthReporter
	backends.Snapshotter
	backends.SnapshotLister
	backends.GroupSnapshotter
	backends.Topologist
	backends.Releaser
	backends.Limiter
	backends.Inspector
	backends.Locator
}

func partsOf(i *backends.Instance) parts {
	f := backends.Resolve(i.Controller, i.Node)
	return parts{
		i.Controller, i.Node, f.Attach, f.Expand, f.Clone, f.Modify, f.List, f.Capacity, f.Health, f.Snapshot, f.Snapshots,
		f.Group, f.Topologist, f.Release, f.Limit, f.Inspect, f.Locate,
	}
}

// Wrong about making volumes.

type idempotentItself struct{ parts }

func (b idempotentItself) Create(ctx context.Context, spec backends.Spec) (*backends.Volume, error) {
	v, err := b.parts.Create(ctx, spec)
	if backends.Is(err, backends.Exists) {
		return b.Find(ctx, spec.Name)
	}
	return v, err
}

// looksBeforeItCreates finds the name free, meets another caller that does too, and goes on.
type looksBeforeItCreates struct {
	parts
	meet    chan struct{}
	handles *sync.Map
}

func (b looksBeforeItCreates) Create(ctx context.Context, spec backends.Spec) (*backends.Volume, error) {
	name := spec.Name
	if _, err := b.Find(ctx, name); err == nil {
		return nil, backends.Errorf(backends.Exists, "there is a volume of that name")
	}
	select {
	case b.meet <- struct{}{}:
	case <-b.meet:
	case <-time.After(time.Second):
	}
	spec.Name += rand.Text()
	v, err := b.parts.Create(ctx, spec)
	if err != nil {
		return nil, err
	}
	b.handles.Store(name, v.Handle)
	return b.Get(ctx, v.Handle)
}

func (b looksBeforeItCreates) Find(ctx context.Context, name string) (*backends.Volume, error) {
	handle, ok := b.handles.Load(name)
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

type leavesHalfAVolume struct{ parts }

func (b leavesHalfAVolume) Create(ctx context.Context, spec backends.Spec) (*backends.Volume, error) {
	v, err := b.parts.Create(context.WithoutCancel(ctx), spec)
	if err != nil || ctx.Err() == nil {
		return v, err
	}
	source, err := b.Source(context.WithoutCancel(ctx), backends.Attachment{Handle: v.Handle, Type: backends.Mount})
	if err != nil {
		return nil, err
	}
	half := errors.Join(os.Remove(source.(backends.Directory).Path), b.Release(context.WithoutCancel(ctx), v.Handle))
	return nil, backends.Errorf(backends.Unavailable, "given up half way: %v", errors.Join(ctx.Err(), half) != nil)
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

func (b ignoresTheLimit) Expand(ctx context.Context, handle string, size backends.CapacityRange) (backends.Expansion, error) {
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

// Wrong about errors and secrets.

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

func (b returnsNothing) Find(ctx context.Context, name string) (*backends.Volume, error) {
	v, err := b.parts.Find(ctx, name)
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

// Wrong about handles and deletion.

type cleansHandles struct{ parts }

func (b cleansHandles) Get(ctx context.Context, handle string) (*backends.Volume, error) {
	return b.parts.Get(ctx, path.Base(handle))
}

func (b cleansHandles) Delete(ctx context.Context, handle string) error {
	return b.parts.Delete(ctx, strings.TrimSpace(handle))
}

type deletesWhatIsNotThere struct{ parts }

func (b deletesWhatIsNotThere) Delete(ctx context.Context, handle string) error {
	err := b.parts.Delete(ctx, handle)
	if backends.Is(err, backends.NotFound) {
		return nil
	}
	return err
}

type deletesWhatIsInUse struct{ parts }

func (b deletesWhatIsInUse) Delete(ctx context.Context, handle string) error {
	if b.Detach(ctx, handle, "") == nil && b.Release(ctx, handle) == nil {
		return b.parts.Delete(ctx, handle)
	}
	return b.parts.Delete(ctx, handle)
}

type keepsOldData struct {
	parts
	old *sync.Map
}

func (b keepsOldData) Create(ctx context.Context, spec backends.Spec) (*backends.Volume, error) {
	_, again := b.old.LoadOrStore(spec.Name, true)
	v, err := b.parts.Create(ctx, spec)
	if err != nil || !again {
		return v, err
	}
	source, err := b.Source(ctx, backends.Attachment{Handle: v.Handle, Type: backends.Mount})
	if err != nil {
		return nil, err
	}
	left := writeDirectory(source.(backends.Directory).Path, []byte("data of an earlier volume"))
	return v, errors.Join(left, b.Release(ctx, v.Handle))
}

// Wrong about optional features.

type offersTooMuch struct{ parts }

func (offersTooMuch) Modify(context.Context, string, any) error {
	return backends.Errorf(backends.Unsupported, "there is nothing to modify")
}

type resetsWhatIsLeftOut struct {
	parts
	zero any
}

func (b resetsWhatIsLeftOut) Modify(ctx context.Context, handle string, mutable any) error {
	if err := b.parts.Modify(ctx, handle, b.zero); err != nil {
		return err
	}
	return b.parts.Modify(ctx, handle, mutable)
}

type attachesTwice struct{ parts }

func (b attachesTwice) Attach(ctx context.Context, request backends.AttachRequest) (map[string]string, error) {
	request.Access.Modes = []backends.AccessMode{backends.MultiNodeMultiWriter}
	return b.parts.Attach(ctx, request)
}

type attachesAnyway struct{ parts }

func (b attachesAnyway) Attach(ctx context.Context, request backends.AttachRequest) (map[string]string, error) {
	attributes, err := b.parts.Attach(ctx, request)
	if backends.Is(err, backends.Exists) || backends.Is(err, backends.Exhausted) {
		return attributes, nil
	}
	if _, missing := b.Get(ctx, request.Handle); missing == nil && backends.Is(err, backends.NotFound) {
		return attributes, nil
	}
	return attributes, err
}

type detachesAll struct{ parts }

func (b detachesAll) Detach(ctx context.Context, handle, _ string) error {
	return b.parts.Detach(ctx, handle, "")
}

type growsInWordsOnly struct{ parts }

func (b growsInWordsOnly) Expand(ctx context.Context, handle string, size backends.CapacityRange) (backends.Expansion, error) {
	if _, err := b.Get(ctx, handle); err != nil {
		return backends.Expansion{}, err
	}
	return backends.Expansion{CapacityBytes: size.RequiredBytes}, nil
}

type listsByPosition struct{ parts }

func (b listsByPosition) List(ctx context.Context, page backends.Page) ([]backends.Volume, string, error) {
	all, _, err := b.parts.List(ctx, backends.Page{})
	if err != nil {
		return nil, "", err
	}
	from := 0
	if page.Token != "" {
		if from, err = strconv.Atoi(page.Token); err != nil || from < 0 || from > len(all) {
			return nil, "", backends.Errorf(backends.Busy, "the token %q is no position", page.Token)
		}
	}
	all = all[from:]
	if page.Limit == 0 || len(all) <= page.Limit {
		return all, "", nil
	}
	return all[:page.Limit], strconv.Itoa(from + page.Limit), nil
}

type listsWithoutOrder struct{ parts }

func (b listsWithoutOrder) List(ctx context.Context, page backends.Page) ([]backends.Volume, string, error) {
	list, next, err := b.parts.List(ctx, page)
	slices.Reverse(list)
	return list, next, err
}

type startsOver struct{ parts }

func (b startsOver) List(ctx context.Context, page backends.Page) ([]backends.Volume, string, error) {
	list, next, err := b.parts.List(ctx, page)
	if backends.Is(err, backends.Busy) {
		page.Token = ""
		return b.parts.List(ctx, page)
	}
	return list, next, err
}

type hasAlwaysAsMuch struct{ parts }

func (hasAlwaysAsMuch) Capacity(context.Context, backends.CapacityQuery) (backends.Capacity, error) {
	return backends.Capacity{AvailableBytes: 1 << 40}, nil
}

type isAlwaysWell struct{ parts }

func (b isAlwaysWell) Health(ctx context.Context, handle string) ([]backends.HealthIssue, error) {
	_, err := b.Get(ctx, handle)
	return nil, err
}

// Wrong about copies.

type restoresNothing struct{ parts }

func (b restoresNothing) Restore(ctx context.Context, spec backends.Spec, snapshot string) (*backends.Volume, error) {
	if _, err := b.GetSnapshot(ctx, snapshot); err != nil {
		return nil, err
	}
	return b.Create(ctx, spec)
}

type looksForTheSourceFirst struct{ parts }

func (b looksForTheSourceFirst) Clone(ctx context.Context, spec backends.Spec, source string) (*backends.Volume, error) {
	if _, err := b.Get(ctx, source); err != nil {
		return nil, err
	}
	return b.parts.Clone(ctx, spec, source)
}

type clonesTheLatestData struct {
	parts
	sources *sync.Map
}

func (b clonesTheLatestData) Clone(ctx context.Context, spec backends.Spec, source string) (*backends.Volume, error) {
	v, err := b.parts.Clone(ctx, spec, source)
	if v != nil {
		b.sources.Store(v.Handle, source)
	}
	return v, err
}

func (b clonesTheLatestData) Source(ctx context.Context, attachment backends.Attachment) (backends.Source, error) {
	if source, ok := b.sources.Load(attachment.Handle); ok {
		attachment.Handle = source.(string)
	}
	return b.parts.Source(ctx, attachment)
}

func (b clonesTheLatestData) Release(ctx context.Context, handle string) error {
	if source, ok := b.sources.Load(handle); ok {
		handle = source.(string)
	}
	return b.parts.Release(ctx, handle)
}

type copiesWhileWritten struct{ parts }

func (b copiesWhileWritten) Clone(ctx context.Context, spec backends.Spec, source string) (*backends.Volume, error) {
	if err := b.Release(ctx, source); err != nil {
		return nil, err
	}
	return b.parts.Clone(ctx, spec, source)
}

func (b copiesWhileWritten) CreateSnapshot(ctx context.Context, spec backends.SnapshotSpec) (*backends.Snapshot, error) {
	if err := b.Release(ctx, spec.Volume); err != nil {
		return nil, err
	}
	return b.parts.CreateSnapshot(ctx, spec)
}

func (b copiesWhileWritten) CreateGroup(ctx context.Context, spec backends.GroupSpec) (*backends.Group, error) {
	for _, volume := range spec.Volumes {
		if err := b.Release(ctx, volume); err != nil {
			return nil, err
		}
	}
	return b.parts.CreateGroup(ctx, spec)
}

type groupsOneByOne struct{ parts }

func (b groupsOneByOne) CreateGroup(ctx context.Context, spec backends.GroupSpec) (*backends.Group, error) {
	for i, volume := range spec.Volumes {
		if _, err := b.CreateSnapshot(ctx, backends.SnapshotSpec{Name: fmt.Sprint(spec.Name, i), Volume: volume}); err != nil {
			return nil, err
		}
	}
	return b.parts.CreateGroup(ctx, spec)
}

type deletesMembers struct{ parts }

func (b deletesMembers) DeleteSnapshot(ctx context.Context, handle string) error {
	err := b.parts.DeleteSnapshot(ctx, handle)
	if backends.Is(err, backends.InUse) {
		return nil
	}
	return err
}

type listsAllSnapshots struct{ parts }

func (b listsAllSnapshots) ListSnapshots(ctx context.Context, _ string, page backends.Page) ([]backends.Snapshot, string, error) {
	return b.parts.ListSnapshots(ctx, "", page)
}

// Wrong about the node.

type sourceDiffersEachTime struct{ parts }

func (b sourceDiffersEachTime) Source(ctx context.Context, attachment backends.Attachment) (backends.Source, error) {
	source, err := b.parts.Source(ctx, attachment)
	if d, ok := source.(backends.Directory); ok {
		dir, err := os.MkdirTemp(d.Path, "mount-")
		return backends.Directory{Path: dir}, err
	}
	return source, err
}

type sourceWrites struct{ parts }

func (b sourceWrites) Source(ctx context.Context, attachment backends.Attachment) (backends.Source, error) {
	source, err := b.parts.Source(ctx, attachment)
	if d, ok := source.(backends.Directory); ok {
		return source, os.WriteFile(filepath.Join(d.Path, "mounted"), nil, 0o600)
	}
	return source, err
}

type oneSourceForAll struct {
	parts
	first *sync.Map
}

func (b oneSourceForAll) Source(ctx context.Context, attachment backends.Attachment) (backends.Source, error) {
	source, err := b.parts.Source(ctx, attachment)
	if err != nil {
		return nil, err
	}
	same, _ := b.first.LoadOrStore(attachment.Type, source)
	return same.(backends.Source), nil
}

type sourceWithoutProof struct{ parts }

func (b sourceWithoutProof) Source(ctx context.Context, attachment backends.Attachment) (backends.Source, error) {
	source, err := b.parts.Source(ctx, attachment)
	if d, ok := source.(backends.Device); ok {
		return backends.Device{Path: d.Path}, err
	}
	return source, err
}

type releasesOnce struct{ parts }

func (b releasesOnce) Release(ctx context.Context, handle string) error {
	if _, err := b.Get(ctx, handle); err != nil {
		return err
	}
	return b.parts.Release(ctx, handle)
}

type locatesInPart struct{ parts }

func (locatesInPart) Topology(context.Context) (backends.Topology, error) {
	return backends.Topology{"another-key": "here"}, nil
}

// listsWithoutSnapshots offers what needs something else, which it does not offer.
type listsWithoutSnapshots struct {
	backends.Backend
	backends.SnapshotLister
}
