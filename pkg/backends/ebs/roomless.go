package ebs

import (
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/cloud/known"
)

// roomless remembers the names of the snapshots for which there is no room, and since when. CreateSnapshot has no
// client token: that EC2 refuses a request says nothing about one before it, of another process, which a read may not
// show yet. Who is told that there is no room forgets the name. The zero value is ready for use.
type roomless struct {
	names known.Things[struct{}]
}

// settled makes the failure for want of room one that is open, until every call has ended so for as long as EC2 may
// take to show what was asked for before. Kinds: Unavailable until then.
func (r *roomless) settled(name string, settle time.Duration, err error) error {
	if !backends.Is(err, backends.Exhausted) {
		r.names.Show(name, struct{}{}) // A snapshot may come of this call: the time begins anew.
		return err
	}
	if r.names.Miss(name) > settle {
		return err
	}
	return backends.Errorf(backends.Unavailable,
		"%w; until %v have passed EC2 may not show one of this name that was asked for before: ask again", err, settle)
}
