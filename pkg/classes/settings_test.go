package classes

import (
	"testing"

	"github.com/stowage-csi/stowage/pkg/params"
)

func TestTheKeyOfTheFilesystemIsThatOfItsField(t *testing.T) {
	if have := params.Encode(&Settings{FSType: "xfs"})[FSTypeKey]; have != "xfs" {
		t.Errorf("the filesystem has another key than %s: %q", FSTypeKey, have)
	}
}
