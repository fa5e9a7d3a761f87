package classes

import (
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/pkg/params"
	"github.com/stowage-csi/stowage/tests/secrets"
)

func TestTheKeyOfTheFilesystemIsThatOfItsField(t *testing.T) {
	if have := params.Encode(&Settings{FSType: "xfs"})[FSTypeKey]; have != "xfs" {
		t.Errorf("the filesystem has another key than %s: %q", FSTypeKey, have)
	}
}

func TestTheRefusalOfALayoutShowsNoSecret(t *testing.T) {
	for _, fsType := range append(secrets.Joined(), "//user:"+secrets.Canary+"@host") {
		err := Geometry{BlockSize: 4096}.Check(fsType)
		if err == nil || strings.Contains(err.Error(), secrets.Canary) {
			t.Errorf("%q: got %v, want a refusal without the secret", fsType, err)
		}
	}
}
