package image

import "testing"

func TestParse(t *testing.T) {
	for _, test := range []struct{ line, want string }{
		{"'http://host/pool/libattr1_2.5.1-4_amd64.deb' libattr1_1%3a2.5.1-4_amd64.deb 22164 MD5Sum:00",
			"libattr1=1:2.5.1-4"},
		{"'http://host/pool/b.deb' base-files_12.4+deb12u15_amd64.deb 70936 SHA256:00", "base-files=12.4+deb12u15"},
		{"'http://host/pool/n.deb' netbase_6.4_all.deb 12800", "netbase=6.4"},
	} {
		if got, err := parse(test.line); err != nil || got.String() != test.want {
			t.Errorf("%s: got %s (%v), want %s", test.line, got, err, test.want)
		}
	}
	for _, line := range []string{"", "E: no", "'uri' strange.deb 1"} {
		if got, err := parse(line); err == nil {
			t.Errorf("%q is taken for the package %s", line, got)
		}
	}
}

// A wanted package must not be left out, except the metapackage that only depends on the kernel's package.
func TestNeedless(t *testing.T) {
	for _, name := range wanted() {
		if needless(name) && name != "linux-image-cloud-amd64" {
			t.Errorf("%s is wanted and left out", name)
		}
	}
	for name, want := range map[string]bool{"perl-base": true, "libicu72": true, "libpython3.11-stdlib": true,
		"linux-image-6.1.0-56-cloud-amd64": false, "libc6": false, "libtirpc3": false} {
		if needless(name) != want {
			t.Errorf("needless(%s) is %v, want %v", name, !want, want)
		}
	}
}
