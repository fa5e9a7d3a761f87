package powerloss

import (
	"context"
	"fmt"

	"github.com/stowage-csi/stowage/pkg/backends/local"
)

// track is a sequence of operations on its own volumes. Tracks can run concurrently.
type track []func(context.Context) error

// groupName is the only group of the script; the contract cannot list groups.
const groupName = "group"

// imageTrack uses all operations on images.
func (s *script) imageTrack() track {
	retain, ahead, more := "retain", 128, 256
	sparse := local.Parameters{Pool: imagePool}
	return track{
		func(ctx context.Context) error {
			return s.make(ctx, wish{name: "sparse", size: mib, parameters: sparse})
		},
		func(ctx context.Context) error { return s.write(ctx, "sparse", "one") },
		func(ctx context.Context) error {
			return s.make(ctx, wish{name: "full", size: mib,
				parameters: local.Parameters{Pool: imagePool, Allocation: "full", ReadAheadKiB: &ahead}})
		},
		func(ctx context.Context) error { return s.write(ctx, "full", "two") },
		func(ctx context.Context) error { return s.expand(ctx, "sparse", 2*mib) },
		func(ctx context.Context) error { return s.expand(ctx, "full", 3*mib) },
		func(ctx context.Context) error {
			return s.modify(ctx, "full", local.Mutable{ReadAheadKiB: &more})
		},
		func(ctx context.Context) error { return s.snapshot(ctx, "snap", "sparse") },
		func(ctx context.Context) error { return s.write(ctx, "sparse", "three") },
		func(ctx context.Context) error {
			return s.make(ctx, wish{name: "clone", size: 3 * mib, parameters: sparse, from: "volume/sparse"})
		},
		func(ctx context.Context) error {
			own := local.Parameters{Pool: imagePool, Allocation: "full"}
			return s.make(ctx, wish{name: "restored", size: 2 * mib, parameters: own, from: "snapshot/snap"})
		},
		func(ctx context.Context) error { return s.group(ctx, groupName, "sparse", "full", "clone") },
		func(ctx context.Context) error { return s.remove(ctx, "clone") },
		func(ctx context.Context) error {
			return s.make(ctx, wish{name: "member", size: 3 * mib, parameters: sparse, from: "snapshot/" + groupName + "/2"})
		},
		func(ctx context.Context) error {
			return s.modify(ctx, "restored", local.Mutable{OnDelete: &retain})
		},
		func(ctx context.Context) error { return s.remove(ctx, "restored") },
		func(ctx context.Context) error { return s.removeSnapshot(ctx, "snap") },
		func(ctx context.Context) error { return s.snapshot(ctx, "snap", "full") },
		func(ctx context.Context) error { return s.removeGroup(ctx, groupName, 3) },
		func(ctx context.Context) error {
			return s.make(ctx, wish{name: "clone", size: mib, parameters: sparse})
		},
		func(ctx context.Context) error { return s.remove(ctx, "full") },
	}
}

// directoryTrack uses all operations that directories support.
func (s *script) directoryTrack() track {
	retain := "retain"
	in := local.Parameters{Pool: directoryPool}
	return track{
		func(ctx context.Context) error {
			return s.make(ctx, wish{name: "dir", size: mib, parameters: in})
		},
		func(ctx context.Context) error { return s.write(ctx, "dir", "four") },
		func(ctx context.Context) error { return s.expand(ctx, "dir", 2*mib) },
		func(ctx context.Context) error { return s.snapshot(ctx, "dir-snap", "dir") },
		func(ctx context.Context) error { return s.write(ctx, "dir", "five") },
		func(ctx context.Context) error {
			return s.make(ctx, wish{name: "dir-clone", size: 2 * mib, parameters: in, from: "volume/dir"})
		},
		func(ctx context.Context) error {
			return s.make(ctx, wish{name: "dir-restored", size: 2 * mib, parameters: in, from: "snapshot/dir-snap"})
		},
		func(ctx context.Context) error {
			return s.modify(ctx, "dir-clone", local.Mutable{OnDelete: &retain})
		},
		func(ctx context.Context) error { return s.remove(ctx, "dir-clone") },
		func(ctx context.Context) error { return s.removeSnapshot(ctx, "dir-snap") },
		func(ctx context.Context) error { return s.remove(ctx, "dir-restored") },
		func(ctx context.Context) error {
			return s.make(ctx, wish{name: "dir-clone", size: mib, parameters: in})
		},
	}
}

// churnTrack creates and deletes volumes, to interfere with the other tracks.
func (s *script) churnTrack() track {
	var t track
	for i := range 6 {
		name, pool := fmt.Sprintf("churn-%d", i), imagePool
		if i%2 == 0 {
			pool = directoryPool
		}
		t = append(t,
			func(ctx context.Context) error {
				return s.make(ctx, wish{name: name, size: mib, parameters: local.Parameters{Pool: pool}})
			},
			func(ctx context.Context) error { return s.write(ctx, name, "six") },
			func(ctx context.Context) error { return s.expand(ctx, name, 2*mib) },
			func(ctx context.Context) error { return s.remove(ctx, name) },
		)
	}
	return t
}

// run runs a track to its end.
func (t track) run(ctx context.Context) error {
	for _, step := range t {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}
