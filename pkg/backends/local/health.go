package local

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/pagetoken"
)

// Health checks the pool and the volume's directory or image. Kinds: NotFound; Busy.
func (e *engine) Health(ctx context.Context, handle string) (issues []backends.HealthIssue, err error) {
	defer annotate(&err, "check volume", handle)
	v, err := e.stock.volumes.get(handle)
	if a := e.stock.volumes.awayOf(handle); a != nil {
		return a.issue(), nil
	}
	if err != nil {
		return nil, err
	}
	return e.health(ctx, v)
}

// ListHealth returns the volumes with health issues, in the order of their handles. Kinds: Busy for a token that is not
// ListHealth's.
func (e *engine) ListHealth(ctx context.Context,
	page backends.Page) (unwell []backends.VolumeHealth, next string, err error) {
	defer annotate(&err, "check volumes", "")
	after, err := startOf(ctx, volumePrefix, page)
	if err != nil {
		return nil, "", err
	}
	var found []entry[backends.VolumeHealth]
	for _, v := range e.stock.volumes.after(after, 0, every) {
		issues, err := e.healthOf(ctx, v)
		if backends.Is(err, backends.NotFound) {
			continue
		}
		if err != nil {
			return nil, "", err
		}
		if len(issues) == 0 {
			continue
		}
		found = append(found, entry[backends.VolumeHealth]{handle: v.handle,
			item: backends.VolumeHealth{Handle: v.handle, Issues: issues}})
		if page.Limit > 0 && len(found) > page.Limit { // One more than the limit shows that there is a next page.
			break
		}
	}
	found, next = pagetoken.Cut(found, page.Limit, entry[backends.VolumeHealth].key)
	for _, entry := range found {
		unwell = append(unwell, entry.item)
	}
	return unwell, next, nil
}

func (e *engine) healthOf(ctx context.Context, v entry[*volume]) ([]backends.HealthIssue, error) {
	if v.away != nil {
		return v.away.issue(), ctx.Err()
	}
	return e.health(ctx, v.item)
}

// health looks without a lock. It reports issues only if they persist while nothing changes the volume, because a
// volume that is just being deleted is not damaged.
func (e *engine) health(ctx context.Context, v *volume) ([]backends.HealthIssue, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if issues, err := look(ctx, e.waiting, v.pool.path, v.look); err != nil {
		return []backends.HealthIssue{{Status: backends.Inaccessible, Reason: poolSilent, Message: err.Error()}}, ctx.Err()
	} else if len(issues) == 0 {
		return nil, nil
	}
	release, err := v.share(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	return v.look(), nil
}

// look checks the data even if the pool is read-only: pods read the data, and it may be lost.
func (v *volume) look() []backends.HealthIssue {
	problem := v.pool.problem()
	switch {
	case problem == nil:
		return v.lookAtData()
	case problem.readable:
		issue := backends.HealthIssue{Status: backends.Degraded, Reason: problem.reason, Message: problem.message}
		return append([]backends.HealthIssue{issue}, v.lookAtData()...)
	}
	return []backends.HealthIssue{{Status: backends.Inaccessible, Reason: problem.reason, Message: problem.message}}
}

func (v *volume) lookAtData() []backends.HealthIssue {
	size := v.record.Load().size() // Read before the image is checked, which may be growing.
	info, err := os.Lstat(v.data())
	switch {
	case errors.Is(err, os.ErrNotExist):
		return lost("DataMissing", fmt.Sprintf("%s is gone: restore it from a backup", v.data()))
	case err != nil:
		return []backends.HealthIssue{{Status: backends.Inaccessible, Reason: "DataUnreadable", Message: err.Error()}}
	}
	return v.pool.storage.look(v.data(), info, size)
}

// replaced returns the issue of data that was replaced by another kind of file.
func replaced(path string, info os.FileInfo) []backends.HealthIssue {
	return lost("DataReplaced", fmt.Sprintf("%s is %s: restore it from a backup", path, info.Mode()))
}

func lost(reason, message string) []backends.HealthIssue {
	return []backends.HealthIssue{{Status: backends.DataLoss, Reason: reason, Message: message}}
}
