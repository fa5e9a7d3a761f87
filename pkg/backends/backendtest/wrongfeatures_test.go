package backendtest

import (
	"context"
	"errors"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// Backends that are wrong about deletion and optional features.

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

// knowsOfNoUse describes directories and images, and is neither Attacher nor Releaser.
type knowsOfNoUse struct {
	backends.Backend
	backends.NodeBackend
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
	if backends.Is(err, backends.Exhausted) || backends.Is(err, backends.Invalid) {
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

func (b growsInWordsOnly) Expand(ctx context.Context, handle string,
	size backends.CapacityRange) (backends.Expansion, error) {
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

type provesEverything struct{ parts }

func (provesEverything) IsAbsent(context.Context, backends.Spec) bool { return true }

func (provesEverything) IsSnapshotAbsent(context.Context, backends.SnapshotSpec) bool { return true }

func (provesEverything) IsGroupAbsent(context.Context, backends.GroupSpec) bool { return true }

type provesNothing struct{ parts }

func (provesNothing) IsAbsent(context.Context, backends.Spec) bool { return false }

func (provesNothing) IsSnapshotAbsent(context.Context, backends.SnapshotSpec) bool { return false }

func (provesNothing) IsGroupAbsent(context.Context, backends.GroupSpec) bool { return false }

// leavesSnapshotsOpen does not report that a snapshot without room will never be created.
type leavesSnapshotsOpen struct{ parts }

func (b leavesSnapshotsOpen) CreateSnapshot(ctx context.Context,
	spec backends.SnapshotSpec) (*backends.Snapshot, error) {
	made, err := b.parts.CreateSnapshot(ctx, spec)
	if backends.Is(err, backends.Exhausted) {
		err = backends.Errorf(backends.Unavailable, "%w", err)
	}
	return made, err
}
