package adversary

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/local"
	"github.com/stowage-csi/stowage/pkg/backends/memory"
	"github.com/stowage-csi/stowage/pkg/backends/nfs"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/standin"
)

// Setup is a backend with its storage and its users' classes.
type Setup struct {
	Name     string
	Disks    []Disk
	StateMiB int64 // of the driver's data directory; 0 for little
	Classes  []Class
	Profiles string // the names of the profiles that are useful here
	// Found are schedules that have found a defect. Every form replays them.
	Found []Found
	// Apart runs controller and node in two processes, so that there can be two controllers.
	Apart bool
	// Alone omits the node: volumes are attached, and written to and read by other means.
	Alone bool
	// Attach says that volumes are attached before they are staged.
	Attach bool
	// Cloud says that storage is a cloud with an API.
	Cloud bool
	// Exported says that the disks are reached by NFS.
	Exported bool
	// Slower is how many times longer everything may take; by default once.
	Slower int
	// Node is the node's ID; by default node-1.
	Node string
	// Ages is a part of the paths of drafts that are kept for a while although they have no record; empty if there are
	// none.
	Ages string
	// Zone is the required zone of volumes; empty for any.
	Zone string
	// Scale is the factor by which volumes are larger than in schedules; by default one.
	Scale int64
	// Long leaves the setup out unless it or a profile is requested: one schedule takes as long as all of another setup's.
	Long bool
	// Settles says that a source is refused only while it is written to: then callers retry, as csi-snapshotter does.
	Settles bool
	// Counts says that the backend promises no more than its storage has.
	Counts     bool
	Definition func(root string) backends.Definition
	Config     func(w *world, v Variant) string // YAML
}

// Found is the schedule of a seed.
type Found struct {
	Profile string
	Seed    uint64
}

// Disk is a filesystem that a setup needs.
type Disk struct {
	FSType string // or servedKind
	MiB    int64  // ignored for a served disk
	Server string // of a share; by default server
}

func (d Disk) server() string { return cmp.Or(d.Server, "server") }

// Class is a kind of volumes that users request.
type Class struct {
	Parameters map[string]string
	Modified   map[string]string // mutable parameters; nil for none
	Undone     map[string]string // mutable parameters that restore the first state; nil if that is not done
	Retains    bool              // a deleted volume with Modified parameters leaves its directory in place
	Raw        bool              // volumes can be devices
	Sized      bool              // sizes are enforced
	Disk       int               // their disk
	Groups     bool              // volumes can be snapshotted together
	Aside      bool              // no volume of it is used before all is calm: its disk may fail
}

// Variant is a configuration, correct or wrong.
type Variant string

// The Variants.
const (
	Proper  Variant = "proper"
	Missing Variant = "missing" // a pool or share is left out
	Renamed Variant = "renamed"
	Added   Variant = "added"
	Empty   Variant = "empty"
)

// Setups returns the setups of the adversary; adding a backend takes one line.
func Setups() []Setup {
	return []Setup{
		{Name: "memory", StateMiB: 1024, Attach: true,
			Classes: []Class{{Raw: true, Sized: true, Groups: true, Modified: readAhead()}}, Profiles: "calls churn groups",
			Definition: just(memory.Definition), Config: plain},
		overLocal("ext4"), overLocal("xfs"), overLocal("btrfs"),
		overShares("nfs", false), overShares("nfs-apart", true), overStrictAPI(),
		overServedPool(), overServedShare(),
	}
}

// GuestSetups returns the setups that need their own kernel: an NFS server, or a clock that can be set.
func GuestSetups() []Setup {
	clocked := overLocal("ext4")
	clocked.Name, clocked.Profiles, clocked.Slower = "local-clock", "clocks", 8
	return []Setup{overKernel(false), overKernel(true), clocked}
}

func (s Setup) node() string { return cmp.Or(s.Node, "node-1") }

func just(definition func() backends.Definition) func(string) backends.Definition {
	return func(string) backends.Definition { return definition() }
}

func plain(*world, Variant) string { return "" }

func readAhead() map[string]string { return map[string]string{"readAheadKiB": "256"} }

func setupNamed(name string) (Setup, error) {
	for _, s := range slices.Concat(Setups(), GuestSetups()) {
		if s.Name == name {
			return s, nil
		}
	}
	return Setup{}, fmt.Errorf("there is no setup %q", name)
}

// overLocal returns a setup with pools of both types on a filesystem, and one on another.
func overLocal(kind string) Setup {
	pool := func(name string) map[string]string { return map[string]string{"pool": name} }
	return Setup{
		Name: "local-" + kind, Counts: true,
		Disks: []Disk{{FSType: kind, MiB: 512}, {FSType: "ext4", MiB: 128}},
		Classes: []Class{
			{Parameters: pool("image"), Raw: true, Sized: true, Groups: true, Modified: readAhead()},
			{Parameters: pool("directory")},
			{Parameters: pool("spare"), Raw: true, Sized: true, Disk: 1, Aside: true},
		},
		Profiles:   "calls churn copies storage brimful config greedy slow foreign groups reading",
		Definition: just(local.Definition), Config: localConfig,
	}
}

func localConfig(w *world, v Variant) string {
	pool := func(name, kind string, disk int) string {
		return fmt.Sprintf("- {name: %s, type: %s, path: %s}\n", name, kind, filepath.Join(w.disks[disk].dir, name))
	}
	first, last := pool("image", "image", 0)+pool("directory", "directory", 0), pool("spare", "image", 1)
	switch v {
	case Missing:
		last = ""
	case Renamed:
		last = strings.Replace(last, "name: spare", "name: other", 1)
	case Added:
		last += pool("more", "directory", 1)
	case Empty:
		return ""
	case Proper:
	}
	return "pools:\n" + first + last
}

// overShares returns a setup with two shares of a server that directories stand for.
func overShares(name string, apart bool) Setup {
	onDelete := func(does string) map[string]string { return map[string]string{"onDelete": does} }
	first := Class{Parameters: share("server", "disk-0"), Groups: true, Modified: onDelete("retain"),
		Undone: onDelete("delete")}
	first.Retains = true
	s := Setup{
		Name: name, Apart: apart, Settles: true, Ages: "/staging/",
		Disks:    []Disk{{FSType: "ext4", MiB: 192}, {FSType: "ext4", MiB: 64}},
		Classes:  []Class{first, {Parameters: share("server", "disk-1"), Disk: 1, Aside: true}},
		Profiles: "calls churn copies storage brimful config crowded slow groups",
		Definition: func(root string) backends.Definition {
			return nfs.DefinitionOver(standin.Servers(root))
		},
		Config: sharesConfig,
	}
	if apart {
		s.Profiles = "calls copies groups changes"
		// A controller received a call after others had taken the snapshot, and deleted it.
		s.Found = []Found{{"copies", 770004}}
	}
	return s
}

// share returns the parameters of a class.
func share(server, name string) map[string]string {
	return map[string]string{"server": server, "share": "/" + name}
}

// overKernel returns the setup with the same shares behind this kernel's server, reached as its client. Their disks are
// not changed, because the server uses each of them. Large copies take too long on an emulated processor.
func overKernel(apart bool) Setup {
	name, profiles := "nfs-kernel", "calls groups clocks denied"
	if apart {
		name, profiles = "nfs-kernel-apart", "calls groups changes"
	}
	s := overShares(name, apart)
	s.Profiles, s.Exported, s.Found = profiles, true, nil
	if !apart {
		// The server's clock was set back after a volume was written to, and the volume could not be cloned for as long.
		s.Found = []Found{{"clocks", 1795791284}}
	}
	s.Slower = 8 // The guest's processor is emulated.
	s.Definition = func(root string) backends.Definition {
		return nfs.DefinitionOver(standin.OverKernel{Servers: standin.Servers(root)})
	}
	return s
}

// sharesConfig names the shares, so that a list knows them before they are used. No volume is created by these names.
func sharesConfig(w *world, v Variant) string {
	share := func(name string, disk int) string {
		return fmt.Sprintf("- {name: %s, server: %s, share: /disk-%d}\n", name, w.setup.Disks[disk].server(), disk)
	}
	first, last := share("disk-0", 0), share("disk-1", 1)
	switch v {
	case Missing:
		last = ""
	case Renamed:
		last = share("other", 1)
	case Added:
		last += share("more", 0)
	case Empty:
		return ""
	case Proper:
	}
	return "shares:\n" + first + last
}
