package export_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/export"
	"github.com/stowage-csi/stowage/tests/secrets"
)

// A zone is the name of an interface. Other text behind the percent sign is refused and not shown, because it may be a
// secret.
func TestWrongZones(t *testing.T) {
	for _, zone := range []string{"password=" + secrets.Canary, "password " + secrets.Canary, secrets.Canary + "\x00",
		"eth0\n" + secrets.Canary, "eth0\x1b[31m" + secrets.Canary, "eth0\u2028" + secrets.Canary, "eth0," + secrets.Canary,
		"eth0/" + secrets.Canary, "eth0%" + secrets.Canary, "a-very-long-" + secrets.Canary, "é" + secrets.Canary,
		".", ".."} {
		for _, server := range []string{"fe80::1%" + zone, "[fe80::1%" + zone + "]", "fe80::zz%" + zone, "nfs.test%" + zone} {
			_, err := export.Parse(server, "/x", "")
			if !backends.Is(err, backends.Invalid) {
				t.Errorf("%q: got %v, want Invalid", server, err)
				continue
			}
			text := err.Error()
			if strings.Contains(text, secrets.Canary) || strconv.Quote(text) != `"`+strings.ReplaceAll(text, `"`, `\"`)+`"` {
				t.Errorf("%q: the failure shows the zone: %s", server, text)
			}
			if host, _, _ := strings.Cut(server, "%"); !strings.Contains(text, strings.TrimPrefix(host, "[")) {
				t.Errorf("%q: the failure does not name the server: %s", server, text)
			}
		}
	}
}
