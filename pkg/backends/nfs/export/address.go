package export

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/safepath"
	"github.com/stowage-csi/stowage/pkg/secret"
)

// Address names an export.
type Address struct {
	Server string // a host's name or IP address, without brackets
	Path   string // absolute and clean
	// Version is one of Versions; empty for the newest version of the server.
	Version string
	// Connection is a list of mount options, with commas, that the kernel only applies to a node's first mount of a
	// server, because all further mounts share its connections.
	Connection string `json:"-"`
}

// Versions returns the possible versions of NFS, newest first.
func Versions() []string { return []string{"4.2", "4.1", "4.0", "3"} }

// String formats the export as in mount(8).
func (a Address) String() string {
	if strings.Contains(a.Server, ":") {
		return "[" + a.Server + "]:" + a.Path
	}
	return a.Server + ":" + a.Path
}

// Below returns the source of a mount of a directory of the export.
func (a Address) Below(dir string) string {
	source := strings.TrimSuffix(a.String(), "/")
	if dir != "" {
		source += "/" + dir
	}
	if strings.HasSuffix(source, ":") {
		return source + "/"
	}
	return source
}

// Same reports whether both are the same export, whatever the version.
func (a Address) Same(b Address) bool { return a.Server == b.Server && a.Path == b.Path }

// Parse checks and normalizes the name of an export. Kinds: Invalid.
func Parse(server, path, version string) (Address, error) {
	a := Address{Path: path, Version: version}
	var err error
	if a.Server, err = parseServer(server); err != nil {
		return a, err
	}
	if a.Path, err = parsePath(path); err != nil {
		return a, err
	}
	if version == "4" {
		a.Version = ""
	} else if version != "" && !slices.Contains(Versions(), version) {
		return a, backends.Errorf(backends.Invalid, "NFS version %q is not known: use %s",
			secret.Option(version), strings.Join(Versions(), ", "))
	}
	return a, nil
}

const (
	// maxHost is the maximum length of a DNS name (RFC 1035, 2.3.4).
	maxHost = 253
	// maxZone is the maximum length of an interface's name (IFNAMSIZ in linux/if.h).
	maxZone = 15
	// letters are the characters of a host's name, in lower case.
	letters = "abcdefghijklmnopqrstuvwxyz0123456789.-_"
)

func parseServer(server string) (string, error) {
	ip, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(server, "["), "]"))
	if err == nil && isZone(ip.Zone()) {
		return ip.String(), nil
	}
	if host, _, zoned := strings.Cut(server, "%"); zoned { // The zone may be any text, and thus a secret.
		return "", backends.Errorf(backends.Invalid, "server is %.64q with a zone, which is not shown: use one only for an "+
			"IPv6 address, with the name of a network interface such as eth0", secret.Option(host))
	}
	lower := strings.ToLower(server)
	if server == "" || len(server) > maxHost || strings.Trim(lower, letters) != "" || strings.HasPrefix(server, "-") ||
		strings.HasPrefix(server, ".") {
		return "", backends.Errorf(backends.Invalid,
			"server is %.64q: use a host's name or an IP address, such as nfs.example.com", secret.Option(server))
	}
	return lower, nil
}

// isZone reports whether the zone of an IPv6 address can be an interface's name; an address without a zone has "".
func isZone(zone string) bool {
	return len(zone) <= maxZone && strings.Trim(strings.ToLower(zone), letters+"@+") == "" && zone != "." && zone != ".."
}

func parsePath(path string) (string, error) {
	clean, err := safepath.Absolute(path)
	if err != nil {
		return "", backends.Errorf(backends.Invalid,
			`share is %.64q: use an absolute path without ".", ".." and doubled slashes`, secret.Option(path))
	}
	if err := CheckText(clean); err != nil {
		return "", backends.Errorf(backends.Invalid, "share is wrong: %w", err)
	}
	return clean, nil
}

// CheckText refuses characters with a special meaning on the way to the server: commas separate mount options, and
// control characters and spaces are escaped in the mount table. The text after one may be an option, and thus a secret.
// Kinds: Invalid.
func CheckText(path string) error {
	bad := func(r rune) bool { return r <= ' ' || r == 0x7f || r == ',' || r == '\\' || r == '\ufffd' }
	if i := strings.IndexFunc(path, bad); i >= 0 {
		return backends.Errorf(backends.Invalid,
			"%q has a space, a comma, a backslash or a control character at byte %d: use a path without",
			secret.Option(path), i)
	}
	return nil
}
