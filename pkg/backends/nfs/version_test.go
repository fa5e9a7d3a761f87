package nfs

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/export"
)

// versions notes the version of each mount that is described for a node. Its servers have no version above newest.
type versions struct {
	export.Mounter
	newest string
	mu     sync.Mutex
	last   string
}

func (v *versions) Open(ctx context.Context, address export.Address) (*export.Root, error) {
	if address.Version == "" {
		address.Version = v.newest
	}
	return v.Mounter.Open(ctx, address)
}

func (v *versions) Source(ctx context.Context, address export.Address, dir string) (backends.Source, error) {
	v.mu.Lock()
	v.last = address.Version
	v.mu.Unlock()
	return v.Mounter.Source(ctx, address, dir)
}

// took returns the version of the last mount, and forgets it; empty if there was none.
func (v *versions) took() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	last := v.last
	v.last = ""
	return last
}

// pair is a version that a class or a PersistentVolume names, and one that the mount options request; empty for none.
type pair struct{ said, asked string }

func (p pair) String() string { return fmt.Sprintf("nfsvers %q and an option for %q", p.said, p.asked) }

// pairs returns all pairs.
func pairs() (all []pair) {
	versions := []string{"", "3", "4", "4.0", "4.1", "4.2"}
	for _, said := range versions {
		for _, asked := range versions {
			all = append(all, pair{said, asked})
		}
	}
	return all
}

// options returns the spellings of the options.
func (p pair) options() [][]string {
	if p.asked == "" {
		return [][]string{nil}
	}
	return [][]string{{"vers=" + p.asked}, {"nfsvers=" + p.asked}, {"v" + p.asked},
		{"hard", "nfsvers=" + p.asked, "v" + p.asked}}
}

// version returns the version of the mount if the server's newest is 4.2; empty if the two differ.
func (p pair) version() string {
	four := func(version string) bool { return strings.HasPrefix(version, "4") }
	switch {
	case (p.said == "" || p.said == "4") && (p.asked == "" || p.asked == "4"):
		return "4.2"
	case p.said == "", p.said == "4" && four(p.asked), p.said == p.asked:
		return p.asked
	case p.asked == "", p.asked == "4" && four(p.said):
		return p.said
	}
	return ""
}

// A mount has the version that is named for it. Two that differ are refused, wherever and however they are named.
func TestVersionsAgree(t *testing.T) {
	w := newWorld(t)
	seen := &versions{Mounter: w.mount, newest: "4.2"}
	w.mount = seen
	w.reopen()
	w.write("", "static", "file")
	check := func(p pair, err error, where string) {
		t.Helper()
		if want := p.version(); want != "" && err != nil {
			t.Errorf("%s: %v, want version %s", p, err, want)
		} else if want == "" {
			w.fails(p.String(), err, backends.Invalid, "the mount options ask for NFS "+p.asked+" ",
				" "+where+" nfsvers for "+p.said+":")
		}
	}
	for _, p := range pairs() {
		spec := in("pvc-"+p.said+"-"+p.asked, "dir-"+p.said+"-"+p.asked, deleteData)
		spec.Parameters.(*Parameters).NFSVersion = p.said
		v := w.make(spec)
		static := map[string]string{"server": testServer, "share": testShare, "subDir": "static"}
		if p.said != "" {
			static["nfsvers"] = p.said
		}
		for _, options := range p.options() {
			check(p, v.Access.Check(backends.Access{Mountings: []backends.Mounting{{Options: options}}}), "the class parameter")
			for where, a := range map[string]backends.Attachment{
				"the class parameter": {Handle: v.Handle, MountOptions: options},
				"the attribute":       {Handle: "by-hand", MountOptions: options, Attributes: static},
			} {
				_, err := w.node.Source(t.Context(), a)
				check(p, err, where)
				if got := seen.took(); got != p.version() {
					t.Errorf("%s: mounted with version %q, want %q", p, got, p.version())
				}
			}
		}
	}
}

// Version 3 is no 4.x, even if it is all that the server has, or all that the share is mounted with.
func TestAnyFourIsNotThree(t *testing.T) {
	for name, row := range map[string]struct{ newest, configured string }{
		"server of version 3": {"3", ""}, "share of version 3": {"4.2", "3"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			seen := &versions{Mounter: w.mount, newest: row.newest}
			w.mount = seen
			w.configured("one")
			w.config.Shares[0].NFSVersion = row.configured
			w.reopen()
			for class, options := range map[string][]string{"4": nil, "": {"nfsvers=4"}} {
				spec := onShare("class-"+class, "one")
				spec.Parameters.(*Parameters).NFSVersion = class
				v := w.make(spec)
				_, err := w.node.Source(t.Context(), backends.Attachment{Handle: v.Handle, MountOptions: options})
				w.fails(fmt.Sprintf("class %q with the options %q", class, options), err, backends.Unavailable, "NFS 4",
					"NFS 3")
				if got := seen.took(); got != "" {
					t.Errorf("class %q with the options %q is mounted with version %s", class, options, got)
				}
				_, err = w.node.Source(t.Context(), backends.Attachment{Handle: v.Handle, MountOptions: []string{"v4.1"}})
				if got := seen.took(); err != nil || got != "4.1" {
					t.Errorf("class %q with the option v4.1: version %q and %v, want 4.1", class, got, err)
				}
			}
		})
	}
}

// The filesystem nfs4 is none of version 3.
func TestNFS4IsNotVersion3(t *testing.T) {
	for _, row := range []struct{ class, option string }{{"3", ""}, {"", "vers=3"}, {"", "v3"}, {"3", "nfsvers=3"}} {
		m := backends.Mounting{Filesystem: "nfs4"}
		if row.option != "" {
			m.Options = []string{row.option}
		}
		err := access(row.class).Check(backends.Access{Mountings: []backends.Mounting{m}})
		if !backends.Is(err, backends.Invalid) || !strings.Contains(err.Error(), `"nfs4"`) {
			t.Errorf("class %q with option %q: %v, want that nfs4 is refused", row.class, row.option, err)
		}
	}
}
