package secret

import "testing"

func TestNamed(t *testing.T) {
	for name, want := range map[string]bool{
		"csi.storage.k8s.io/serviceAccount.tokens": true, "Password": true, "node.session.auth.password": true,
		"accessKeyId": true, "CHAP-secret": true, "passphrase": true,
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
