package nfs

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// straysTold is the minimum time between two log lines about stray files among the claims of a share.
const straysTold = time.Hour

// claims removes claims without a holder, which a process leaves if it ends between claiming a directory and publishing
// the volume.
func (j *janitors) claims(s *share.Share, h *share.Home) error {
	names, err := h.Names(share.Claims, "")
	if err != nil {
		return err
	}
	volumes, err := h.Names(share.Volumes, suffix)
	if err != nil {
		return err
	}
	slices.Sort(volumes)
	held := map[string]bool{} // IDs of volumes
	var busy, stray error
	strays := 0
	defer func() { j.tellOfStrays(s.Address.String(), strays, stray) }()
	for _, name := range names {
		holder, err := h.Claimed(name)
		if backends.Is(err, backends.Unusable) {
			strays, stray = strays+1, err
			continue
		}
		if err != nil || j.life.Err() != nil {
			return errors.Join(err, j.life.Err())
		}
		id, _, _ := strings.Cut(holder, "-")
		if _, published := slices.BinarySearch(volumes, id); published || holder == "" {
			held[id] = true
			continue
		}
		switch err := j.engine.unclaimDead(s, h, name, holder); {
		case backends.Is(err, backends.Busy): // Another controller works on it, and may not finish.
			busy = errors.Join(busy, err)
		case err != nil:
			if err = j.leave(s, holder, err); err != nil {
				return err
			}
		}
	}
	return errors.Join(busy, j.unclaimed(s, h, slices.DeleteFunc(volumes, func(id string) bool { return held[id] })))
}

// tellOfStrays occasionally logs how many files among the claims are not claims, with an example. A user with write
// access to a share can create any number of them.
func (j *janitors) tellOfStrays(share string, count int, one error) {
	if count > 0 && j.tellDue(share) {
		j.engine.log.Warn("what is no claim is left alone", "share", share, "count", count, "error", one)
	}
}

// tellDue reports whether a log line about strays is due, and notes that it is written.
func (j *janitors) tellDue(share string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if last, told := j.strays[share]; told && time.Since(last) < straysTold {
		return false
	}
	j.strays[share] = time.Now()
	return true
}

// mostTold is the maximum number of volumes without a claim that are logged at a time.
const mostTold = 10

// unclaimed logs the volumes that have lost their claims: a user has removed them, or a backup without symbolic links
// was restored. The claims are not recreated. Another volume, or the retained data of one, may be inside the directory
// by now, and would be deleted with this volume.
func (j *janitors) unclaimed(s *share.Share, h *share.Home, ids []string) error {
	told := 0
	for _, id := range ids {
		if !isHex(id, 32) {
			continue
		}
		r, holder, err := withoutClaim(h, id)
		if err = errors.Join(err, j.life.Err()); err != nil || told >= mostTold {
			return err
		}
		if r == nil {
			continue
		}
		told++
		j.engine.log.Warn("a volume has no claim to its directory, which stays when it is deleted, and inside which another "+
			"can be made: if no other is inside, make a symbolic link by the name of the claim, with the owner as its text",
			"share", s.Address.String(), "directory", r.SubDir, "claim", share.At(share.Claims, claimOf(r.SubDir)),
			"owner", r.key(), "holder", holder)
	}
	return nil
}

// withoutClaim returns the record of an existing volume without a claim, and the holder of the claim; nil if the volume
// has its claim.
func withoutClaim(h *share.Home, id string) (r *record, holder string, err error) {
	r, err = read(h, share.Volumes, id+suffix)
	if errors.Is(err, fs.ErrNotExist) || backends.Is(err, backends.Unusable) { // The volume's health reports the problem.
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	holder, err = h.Claimed(claimOf(r.SubDir))
	if backends.Is(err, backends.Unusable) {
		err = nil
	}
	if err != nil || holder == r.key() {
		return nil, "", err
	}
	now, err := read(h, share.Volumes, id+suffix) // A deletion drops the claim after the record is gone.
	if err != nil || now.Turn != r.Turn {
		return nil, "", ignoreGone(err)
	}
	return r, holder, nil
}
