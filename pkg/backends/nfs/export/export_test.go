package export_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/export"
)

func TestParse(t *testing.T) {
	for _, row := range []struct{ server, path, version, text, below string }{
		{"nfs.example.com", "/exports/data", "", "nfs.example.com:/exports/data", "nfs.example.com:/exports/data/a/b"},
		{"NFS.Example.com", "/exports/data/", "4.1", "nfs.example.com:/exports/data", "nfs.example.com:/exports/data/a/b"},
		{"10.0.0.1", "/", "3", "10.0.0.1:/", "10.0.0.1:/a/b"},
		{"fd00::1", "/x", "4", "[fd00::1]:/x", "[fd00::1]:/x/a/b"},
		{"[fd00::1]", "/x", "4.2", "[fd00::1]:/x", "[fd00::1]:/x/a/b"},
		{"[fe80::1%eth0]", "/x", "4.2", "[fe80::1%eth0]:/x", "[fe80::1%eth0]:/x/a/b"},
		{"fe80::1%Br-lan_0.100@2", "/x", "", "[fe80::1%Br-lan_0.100@2]:/x", "[fe80::1%Br-lan_0.100@2]:/x/a/b"},
	} {
		a, err := export.Parse(row.server, row.path, row.version)
		if err != nil || a.String() != row.text || a.Below("a/b") != row.below {
			t.Errorf("%q, %q: got %s, %s, %v; want %s, %s", row.server, row.path, a, a.Below("a/b"), err, row.text, row.below)
		}
		if root := a.Below(""); root != row.text {
			t.Errorf("the root of %s is %s", row.text, root)
		}
		if again, err := export.Parse(a.Server, a.Path, a.Version); err != nil || again != a {
			t.Errorf("%+v is read again as %+v, %v", a, again, err)
		}
	}
	for _, row := range [][3]string{{"", "/x", ""}, {"a", "x", ""}, {"a", "/../x", ""}, {"a", "/x,ro", ""},
		{"a,b", "/x", ""}, {"a", "/x", "5"}, {"a", "/x", "4.3"}, {"-a", "/x", ""}} {
		if _, err := export.Parse(row[0], row[1], row[2]); !backends.Is(err, backends.Invalid) {
			t.Errorf("%q: got %v, want Invalid", row, err)
		}
	}
}

func TestKernelSource(t *testing.T) {
	for version, want := range map[string]struct {
		kind    string
		options []string
	}{
		"4.2": {"nfs4", []string{"vers=4.2", "addr=127.0.0.1", "proto=tcp"}},
		"4.0": {"nfs4", []string{"vers=4.0", "addr=127.0.0.1", "proto=tcp"}},
		"3":   {"nfs", []string{"vers=3", "addr=127.0.0.1", "proto=tcp", "mountaddr=127.0.0.1", "mountproto=tcp"}},
	} {
		source, err := export.Kernel{}.Source(t.Context(), export.Address{Server: "127.0.0.1", Path: "/x", Version: version},
			"a/b")
		have, ok := source.(backends.Export)
		if err != nil || !ok || have.FSType != want.kind || have.Source != "127.0.0.1:/x/a/b" ||
			!slices.Equal(have.Options, want.options) {
			t.Errorf("NFS %s: got %+v, %v; want %+v", version, source, err, want)
		}
	}
}

// A server that does not exist, and a kernel without NFS, differ from an invalid request.
func TestKernelOpenFails(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	_, err := export.Kernel{}.Open(ctx, export.Address{Server: "no-such-server.invalid", Path: "/x"})
	if !backends.Is(err, backends.Unavailable) || !strings.Contains(err.Error(), "no-such-server.invalid") {
		t.Errorf("a server that is not there: %v, want Unavailable, naming it", err)
	}
}

// An export that cannot be mounted may be mountable later, and the error says what was tried. Here the kernel may have
// no NFS, or the machine no server.
func TestKernelOpenSaysWhatWasTried(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	root, err := export.Kernel{}.Open(ctx, export.Address{Server: "127.0.0.1", Path: "/no/such/export", Version: "4.1"})
	if err == nil {
		t.Fatal("an export that is not there was mounted: ", root.Close())
	}
	if !backends.Is(err, backends.Unavailable) && !backends.Is(err, backends.Denied) ||
		!strings.Contains(err.Error(), "127.0.0.1:/no/such/export with NFS 4.1") {
		t.Errorf("got %v (%s), want Unavailable, or Denied without the right to mount, naming export and version", err,
			backends.KindOf(err))
	}
}

func FuzzParse(f *testing.F) {
	f.Add("nfs.example.com", "/exports", "4.1")
	f.Add("::1", "/", "")
	f.Add("a,b", "/../x", "4")
	f.Fuzz(func(t *testing.T, server, path, version string) {
		a, err := export.Parse(server, path, version)
		if err != nil {
			if !backends.Is(err, backends.Invalid) {
				t.Fatal(err)
			}
			return
		}
		if strings.ContainsAny(a.String(), ", \x00\n\\") || strings.Contains(a.Path, "..") &&
			slices.Contains(strings.Split(a.Path, "/"), "..") {
			t.Fatalf("%q, %q become %s", server, path, a)
		}
		if again, err := export.Parse(a.Server, a.Path, a.Version); err != nil || again != a {
			t.Fatalf("%+v is read again as %+v, %v", a, again, err)
		}
	})
}

// One server may have several names and addresses.
func TestSameServer(t *testing.T) {
	for names, want := range map[[2]string]bool{
		{"nfs.invalid", "nfs.invalid"}: true, {"nfs.invalid", "nfs.invalid."}: true, {"nfs.invalid", "other.invalid"}: false,
		{"10.0.0.1", "::ffff:10.0.0.1"}: true, {"10.0.0.1", "10.0.0.2"}: false, {"localhost", "127.0.0.1"}: true,
		{"127.0.0.1", "nfs.invalid"}: false,
	} {
		if have := (export.Kernel{}).SameServer(t.Context(), names[0], names[1]); have != want {
			t.Errorf("%q are the same server: %t, want %t", names, have, want)
		}
	}
}
