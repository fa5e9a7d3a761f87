package secret

import (
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/tests/secrets"
)

func TestNamed(t *testing.T) {
	for name, want := range map[string]bool{
		"csi.storage.k8s.io/serviceAccount.tokens": true, "Password": true, "node.session.auth.password": true,
		"accessKeyId": true, "CHAP-secret": true, "passphrase": true, "pwd": true,
		"pool": false, "serial": false, "noatime": false, "csi.storage.k8s.io/pod.name": false, "": false,
	} {
		if Named(name) != want {
			t.Errorf("Named(%q) = %v", name, !want)
		}
	}
}

func TestOptions(t *testing.T) {
	got := Options([]string{"noatime", "data=ordered", "password=hunter2", "password"})
	if want := "noatime,data=ordered,password=" + Hidden + ",password"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A user joins options, or uses a wrong sign between name and value: the secret stays hidden.
func TestJoinedOptions(t *testing.T) {
	for option, want := range map[string]string{
		"a=b,password=hunter2":         "a=b,password=" + Hidden,
		"noatime,password=hunter2,ro":  "noatime,password=" + Hidden,
		"vers=4.1 secret=hunter2":      "vers=4.1 secret=" + Hidden,
		"x=y;credentials:hunter2":      "x=y;credentials:" + Hidden,
		"password\xffhunter2":          "password\ufffd" + Hidden,
		"data=ordered,noatime":         "data=ordered,noatime",
		"--at=https://u:hunter2@h:1/x": "--at=https://u:" + Hidden,
		"//u:hunter2@h/share":          "//u:" + Hidden,
		"https://h:443/x":              "https://h:443/x",
		"https://u@h:443/x":            "https://u@h:443/x",
		"a://b,c:d@e":                  "a://b,c:" + Hidden,
		`context="a:b:s0:c1,c2"`:       `context="a:b:s0:c1,c2"`,
	} {
		if got := Option(option); got != want {
			t.Errorf("%s: got %q, want %q", option, got, want)
		}
	}
}

// Whatever joins two options, a secret in the second stays hidden, and the first is shown.
func TestOptionsWithAnyJoiner(t *testing.T) {
	for _, joined := range secrets.Joined() {
		if got := Option(joined); strings.Contains(got, secrets.Canary) || !strings.Contains(got, "4") {
			t.Errorf("%q is shown as %q", joined, got)
		}
	}
}
