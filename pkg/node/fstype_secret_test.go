package node

import (
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/pkg/classes"
	"github.com/stowage-csi/stowage/tests/secrets"
)

// TestTheRefusalOfAFilesystemShowsNoSecret: the refusal goes into events and the log.
func TestTheRefusalOfAFilesystemShowsNoSecret(t *testing.T) {
	for _, fsType := range append(secrets.Joined(), "//user:"+secrets.Canary+"@host") {
		request := StageRequest{StagingPath: "/staging", Use: Use{FSType: fsType}, Settings: classes.Settings{FSType: "ext4"}}
		swapped := StageRequest{StagingPath: "/staging", Use: Use{FSType: "ext4"}, Settings: classes.Settings{FSType: fsType}}
		for what, err := range map[string]error{
			"of a capability": (&staging{request: request}).check(t.Context()),
			"of a class":      (&staging{request: swapped}).check(t.Context()),
			"of an export":    checkExport(fsType, "nfs4"),
		} {
			if err == nil || strings.Contains(err.Error(), secrets.Canary) {
				t.Errorf("%q %s: got %v, want a refusal without the secret", fsType, what, err)
			}
		}
	}
}
