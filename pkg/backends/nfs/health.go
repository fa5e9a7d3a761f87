package nfs

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/pkg/failure"
	"github.com/stowage-csi/stowage/pkg/pagetoken"
	"github.com/stowage-csi/stowage/pkg/safepath"
)

// Health checks that the server answers and that the volume's directory exists. Kinds: NotFound.
func (e *controllerSide) Health(ctx context.Context, handle string) (issues []backends.HealthIssue, err error) {
	defer annotate(&err, "check volume", handle)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	hd, err := e.parse(volumeKind, handle)
	if backends.Is(err, backends.NotFound) {
		return nil, err
	}
	if err != nil {
		return unreachable(err), nil
	}
	return e.examine(ctx, hd)
}

// examine is Health for a parsed handle. Kinds: NotFound.
func (e *controllerSide) examine(ctx context.Context, hd handle) ([]backends.HealthIssue, error) {
	var found atomic.Pointer[[]backends.HealthIssue]
	err := e.at(ctx, hd, "checking a volume", func(_ context.Context, s *share.Share, h *share.Home, id string) error {
		r, err := present(h, volumeKind, id, inPlace)
		if err != nil {
			return err
		}
		look := e.look(s, r)
		found.Store(&look)
		return nil
	})
	switch {
	case backends.Is(err, backends.NotFound):
		return nil, err
	case backends.Is(err, backends.Unusable):
		return unreadable(err), nil
	case err != nil:
		return unreachable(err), nil
	}
	return *found.Load(), nil
}

// healthOf is Health for an entry of an enumeration. A share that did not answer is not called again for each of its
// volumes.
func (e *controllerSide) healthOf(ctx context.Context, f entry) ([]backends.HealthIssue, error) {
	if f.away != nil {
		return unreachable(f.away), nil //nolint:nilerr // It is what is wrong with the volume.
	}
	if f.damage != nil {
		return unreadable(f.damage), nil //nolint:nilerr // It is what is wrong with the volume.
	}
	hd, err := e.parse(volumeKind, f.Handle)
	if err == nil && hd.share == "" && !e.known.leads(hd.where(), hex.EncodeToString(hd.home[:])) {
		hd.address, hd.share = f.place.Address, f.place.Name // A record may name any server, so that server is not called.
		return e.examine(ctx, hd)
	}
	return e.Health(ctx, f.Handle)
}

func unreadable(err error) []backends.HealthIssue {
	return []backends.HealthIssue{{Status: backends.Inaccessible, Reason: "RecordUnreadable",
		Message: failure.OneLine(err).Error()}}
}

func unreachable(err error) []backends.HealthIssue {
	return []backends.HealthIssue{{Status: backends.Inaccessible, Reason: "ShareUnreachable",
		Message: failure.OneLine(err).Error()}}
}

// look returns the issues of a volume whose share answers.
func (e *engine) look(s *share.Share, r *record) []backends.HealthIssue {
	dir, err := safepath.OpenBeneath(s.Dir(), r.SubDir)
	switch {
	case backends.Is(err, backends.NotFound):
		return lost("DataMissing", fmt.Sprintf("the directory %s is gone from %s: restore it from a backup", r.SubDir,
			s.Address))
	case backends.Is(err, backends.Invalid):
		return lost("DataReplaced", fmt.Sprintf("%s on %s is no longer a directory: restore it from a backup: %v", r.SubDir,
			s.Address, err))
	case err != nil && !backends.Is(err, backends.Denied): // A pod may deny everybody access to its directory.
		return []backends.HealthIssue{{Status: backends.Inaccessible, Reason: "DataUnreadable", Message: err.Error()}}
	}
	if err == nil {
		closeQuietly(dir)
	}
	if used, known := e.usage.of(s, r); known && used > r.SizeBytes {
		return []backends.HealthIssue{{
			Status: backends.Degraded, Reason: "OverRecordedSize",
			Message: fmt.Sprintf("its files take %d bytes or more, and its size is %d: NFS enforces no size; expand the "+
				"volume or remove files", used, r.SizeBytes),
		}}
	}
	return nil
}

func lost(reason, message string) []backends.HealthIssue {
	return []backends.HealthIssue{{Status: backends.DataLoss, Reason: reason, Message: message}}
}

// healthToken begins the tokens of ListHealth, which differ from those of List.
const healthToken = "health."

// ListHealth returns the volumes that are not well. Kinds: as enumerate.
func (e *controllerSide) ListHealth(ctx context.Context,
	page backends.Page) (unwell []backends.VolumeHealth, next string, err error) {
	defer annotate(&err, "check volumes", "")
	if page.Token != "" {
		var ours bool
		if page.Token, ours = strings.CutPrefix(page.Token, healthToken); !ours || page.Token == "" {
			return nil, "", backends.Errorf(backends.Busy,
				"the token is not one of this enumeration: start again without a token")
		}
	}
	// Most volumes are well: each round lists twice as many, so that names are listed only a few times.
	for count := page.Limit; ; count *= 2 {
		found, rest, err := e.enumerate(ctx, volumeKind, backends.Page{Token: page.Token, Limit: count},
			func(*record) bool { return true })
		if err != nil {
			return nil, "", err
		}
		for _, f := range found {
			is, err := e.healthOf(ctx, f)
			switch {
			case backends.Is(err, backends.NotFound) || err == nil && len(is) == 0:
				continue
			case err != nil:
				return nil, "", err
			case page.Limit > 0 && len(unwell) == page.Limit:
				return unwell, healthToken + pagetoken.After(unwell[len(unwell)-1].Handle), nil
			}
			unwell = append(unwell, backends.VolumeHealth{Handle: f.Handle, Issues: is})
		}
		if rest == "" {
			return unwell, "", nil
		}
		page.Token = rest
	}
}
