package adversary

import (
	"context"

	"github.com/stowage-csi/stowage/tests/vm/nfsd"
)

// export makes this kernel's NFS server export the disks, except the last one, which is the driver's own.
func (w *world) export() (err error) {
	ctx := context.Background()
	if err := nfsd.Clear(ctx); err != nil {
		return err
	}
	if w.server, err = nfsd.Start(ctx, nfsd.Config{}); err != nil {
		return err
	}
	for _, d := range w.disks[:len(w.disks)-1] {
		if err := w.server.Export(ctx, d.export("no_root_squash")); err != nil {
			return err
		}
	}
	return nil
}

func (d *disk) export(options ...string) nfsd.Export {
	return nfsd.Export{Path: d.dir, Options: options}
}

// denied makes the server deny a disk to everybody, or to root, for a time.
func (w *world) denied(f Fault) (func() error, error) {
	exported := len(w.disks) - 1
	ctx, d := context.Background(), w.disks[f.On%exported]
	allow := func() error { return w.server.Export(ctx, d.export("no_root_squash")) }
	if f.On/exported%2 == 0 {
		return allow, w.server.Unexport(ctx, d.export())
	}
	return allow, w.server.Export(ctx, d.export("root_squash"))
}

// denied returns creations whose answers are lost, while the server denies access for a time: a missing right says
// nothing about earlier creations.
func (d dice) denied() [][]Step {
	tracks := make([][]Step, 3)
	for i := range tracks {
		tracks[i] = []Step{{Op: Create, MiB: 8}, {Op: Use}, {Op: Write, Count: 4}}
		for range 6 {
			s := Step{Op: pick(d, Create, Create, Snapshot, Clone), Slot: 2, MiB: 8, How: pick(d, Lost, Twice, Hasty)}
			if s.Op == Snapshot {
				s.Slot = 0
			}
			if s.Within = d.ms(20, 400); s.How == Lost {
				s.Within = d.ms(500, 3000) // as long as sidecars wait, so that access is denied in between
			}
			tracks[i] = append(tracks[i], s, Step{Op: Pause, Count: 50})
		}
		tracks[i][3+d.IntN(6)].Fault = &Fault{
			Kind: "denied", On: d.IntN(4), After: d.ms(0, 1500), For: d.ms(2000, 5000),
		}
	}
	return tracks
}

// unexport stops the server, which uses each disk.
func (w *world) unexport() error {
	if w.server == nil {
		return nil
	}
	return w.server.Stop(context.Background())
}
