package ebs

import (
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/cloud/known"
)

// roomless remembers the names of snapshots for which there is no room, and since when. CreateSnapshot has no client
// token: a refusal says nothing about an earlier request of another process, which reads may not show yet. A caller
// that gets Exhausted forgets the name. The zero value is ready for use.
type roomless struct {
	names known.Things[struct{}]
}

// settled makes Exhausted non-final until all calls have ended with it for as long as EC2 may take to show an earlier
// request. Kinds: Unavailable until then.
func (r *roomless) settled(name string, settle time.Duration, err error) error {
	if !backends.Is(err, backends.Exhausted) {
		r.names.Show(name, struct{}{}) // This call may lead to a snapshot: the time begins anew.
		return err
	}
	if r.names.Miss(name) > settle {
		return err
	}
	return backends.Errorf(backends.Unavailable,
		"%w; until %v have passed EC2 may not show one of this name that was asked for before: ask again", err, settle)
}
