package powerloss

import (
	"flag"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/tests/mountns"
	"github.com/stowage-csi/stowage/tests/orchestrator"
)

var (
	full    = flag.Bool("full", false, "replay every cut, not a sample")
	samples = flag.Int("samples", 60, "how many cuts of each kind a sample has at least")
	seeds   = flag.Int("seeds", 6, "in how many ways a drive with a cache loses its power at each cut")
	seed    = flag.Uint64("seed", 1, "the seed of what is random; 0 for a new one")
	workers = flag.Int("workers", 2, "how many drives are replayed at a time")
	only    = flag.String("fs", "ext4,xfs,btrfs", "the filesystems to test")
)

// prefix is the prefix of the names of all files of this test.
const prefix = "stowage-powerloss"

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == guardWord {
		runGuard(os.Stdin, os.Stdout)
		return
	}
	os.Exit(mountns.Isolate(m.Run))
}

func TestPowerLoss(t *testing.T) {
	demand(t)
	boot := newBoots(t)
	s := seedOf(t)
	var table report
	t.Cleanup(func() { t.Log("\n" + table.String()) })
	for _, f := range chosen() {
		for _, m := range []manner{{name: "quiet"}, {name: "restless", restless: true, seed: s}} {
			t.Run(f.name+"/"+m.name, func(t *testing.T) {
				boot("before")
				r := record(t, f, m)
				boot("after")
				if writes, flushes := r.count(); writes == 0 || flushes == 0 {
					t.Fatalf("the drive saw %d writes and %d flushes: nothing was recorded", writes, flushes)
				}
				for _, mode := range []model{strict, cached} {
					losses := replayAll(t, r, choose(r, mode, s), *workers, s)
					table.add(r, mode, losses)
					complain(t, r, losses)
				}
			})
		}
	}
}

// demand fails the test on a machine that lacks a requirement. Otherwise it gives the test its own directory, which the
// next run removes if this one is killed. Mounts and loop devices end with the process.
func demand(t *testing.T) {
	t.Helper()
	missing := orchestrator.Missing()
	if file, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0); err != nil {
		missing = append(missing, "FUSE: "+err.Error())
	} else {
		must(t, file.Close())
	}
	for _, f := range chosen() {
		if _, err := exec.LookPath("mkfs." + f.name); err != nil {
			missing = append(missing, err.Error())
		}
	}
	if len(chosen()) == 0 {
		missing = append(missing, "a filesystem: -fs is "+*only)
	}
	if len(missing) > 0 {
		t.Fatalf("this machine lacks what the test needs: %q", missing)
	}
	workspace, err := orchestrator.NewWorkspace(prefix)
	must(t, err)
	for _, warning := range workspace.Warnings {
		t.Errorf("leftover: %s", warning)
	}
	t.Cleanup(func() { must(t, workspace.Remove()) })
	t.Setenv("TMPDIR", workspace.Dir) // For t.TempDir.
}

// chosen returns the filesystems in the flag.
func chosen() []filesystem {
	var list []filesystem
	for _, f := range filesystems() {
		for name := range strings.SplitSeq(*only, ",") {
			if name == f.name {
				list = append(list, f)
			}
		}
	}
	return list
}

func seedOf(t *testing.T) uint64 {
	s := *seed
	if s == 0 {
		s = rand.Uint64()
	}
	t.Logf("seed %d: to choose and lose the same, -seed %d", s, s)
	return s
}

// choose selects the cuts to replay.
func choose(r *recording, m model, s uint64) []cut {
	cuts := allCuts(r.entries, m, *seeds)
	if *full {
		return cuts
	}
	return sample(cuts, r.entries, *samples, rand.New(rand.NewPCG(s, uint64(len(cuts)))))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
