package export

import (
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/tests/secrets"
)

// TestRefusedOptionHidesSecrets makes the kernel refuse an option of the connection that contains a secret.
func TestRefusedOptionHidesSecrets(t *testing.T) {
	for _, option := range []string{"nconnect=4 password=" + secrets.Canary, "resvport password=" + secrets.Canary} {
		_, err := mount("tmpfs", "none", []string{option}) // Any filesystem does, as it has no such option.
		if err == nil || !strings.Contains(err.Error(), option[:8]) {
			t.Errorf("%.8s...: got %v, want a failure that names it", option, err)
		} else if strings.Contains(err.Error(), secrets.Canary) {
			t.Errorf("the failure shows the secret: %v", err)
		}
	}
}
