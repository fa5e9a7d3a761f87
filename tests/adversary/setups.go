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

// Setup is a backend with its storage and the classes that its users have.
type Setup struct {
	Name     string
	Disks    []Disk
	StateMiB int64 // of the driver's data directory; 0 for little
	Classes  []Class
	Profiles string // the names of those that mean something here
	// Found are schedules that have found a defect.
	Found []Found
	// Apart has controller and node in two processes, so that there can be two controllers.
	Apart bool
	// Alone leaves the node out: volumes are attached, and written to and read by other means.
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
	// Ages is a part of the paths of drafts that are kept for a while although nobody has a record of them; empty where
	// there are none.
	Ages string
	// Zone is where volumes have to be; empty for anywhere.
	Zone string
	// Scale is how many times larger volumes are than schedules say; by default once.
	Scale int64
	// Long leaves the setup out unless it or a profile is asked for: a schedule takes as long as all of another's.
	Long bool
	// Settles says that a source that is written to is refused only while it is: then callers ask again, as
	// csi-snapshotter does.
	Settles bool
	// Counts says that the backend promises no more than there is.
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
	MiB    int64  // of no meaning for what is served
	Server string // whose share it is, where it is one; by default server
}

func (d Disk) server() string { return cmp.Or(d.Server, "server") }

// Class is a way in which users ask for volumes.
type Class struct {
	Parameters map[string]string
	Modified   map[string]string // mutable parameters; nil where there are none
	Undone     map[string]string // mutable parameters that are as at first; nil for not to go back
	Retains    bool              // what is modified leaves its directory where it is, of its own name, when it is deleted
	Raw        bool              // volumes can be devices
	Sized      bool              // sizes are enforced
	Disk       int               // where they are
	Groups     bool              // volumes can be snapshotted together
	Aside      bool              // nobody uses a volume of it before all is calm: its disk may fail
}

// Variant is how wrong a configuration is.
type Variant string

// The Variants.
const (
	Proper  Variant = "proper"
	Missing Variant = "missing" // a pool or share is left out
	Renamed Variant = "renamed"
	Added   Variant = "added"
	Empty   Variant = "empty"
)

// Setups are all that the adversary attacks: a backend is a line.
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

// GuestSetups are those that need a kernel of their own: an NFS server, or a clock that can be set.
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

// overLocal has pools of both types on a filesystem, and one on another.
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

// overShares has two shares of a server that directories stand for.
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
		// A controller heard of a call when others had made the snapshot, and deleted it.
		s.Found = []Found{{"copies", 770004}}
	}
	return s
}

// share are the parameters of a class.
func share(server, name string) map[string]string {
	return map[string]string{"server": server, "share": "/" + name}
}

// overKernel has the same shares behind this kernel's server, and reaches them as its client. Their disks stay as they
// are: a server has each of them in use. Large copies take too long on an emulated processor.
func overKernel(apart bool) Setup {
	name, profiles := "nfs-kernel", "calls groups clocks denied"
	if apart {
		name, profiles = "nfs-kernel-apart", "calls groups changes"
	}
	s := overShares(name, apart)
	s.Profiles, s.Exported, s.Found = profiles, true, nil
	if !apart {
		// The server's clock was set back after a volume was written to, and that could not be cloned for as long.
		s.Found = []Found{{"clocks", 1795791284}}
	}
	s.Slower = 8 // The guest's processor is emulated.
	s.Definition = func(root string) backends.Definition {
		return nfs.DefinitionOver(standin.OverKernel{Servers: standin.Servers(root)})
	}
	return s
}

// sharesConfig names the shares, so that a list knows them before they are used. No volume is made by these names.
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
