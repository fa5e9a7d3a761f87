package image

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/tests/e2e/cluster/store"
)

// A package that the archive does not know is a mistake in wanted, and not an infrastructure failure, unless the
// package lists could not be updated.
func TestMisspelledPackage(t *testing.T) {
	for name, test := range map[string]struct {
		update, install string
		infra           bool
	}{
		"unknown":                       {"exit 0", "E: Unable to locate package grepp", false},
		"unknown to lists that are old": {"exit 100", "E: Unable to locate package grepp", true},
		"cannot be fetched":             {"exit 0", "E: Failed to fetch http://host/grep.deb", true},
	} {
		t.Run(name, func(t *testing.T) {
			programs := t.TempDir()
			text := "#!/bin/sh\ncase \"$*\" in *update) " + test.update + ";; esac\n" +
				"echo '" + test.install + "' >&2; exit 100\n"
			if err := os.WriteFile(filepath.Join(programs, "apt-get"), []byte(text), 0o700); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", programs+":"+os.Getenv("PATH"))
			m := Maker{Store: &store.Store{Dir: t.TempDir(), Out: t.Output(), Label: "vm"}, Source: "."}
			_, err := m.Make(t.Context())
			if err == nil || !strings.Contains(err.Error(), test.install) ||
				strings.Contains(err.Error(), "INFRA: ") != test.infra {
				t.Errorf("got %v, want one of the weather (INFRA): %t", err, test.infra)
			}
		})
	}
}
