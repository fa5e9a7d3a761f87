package store

import (
	"fmt"
	"regexp"
)

// ours matches messages about mistakes in the tree itself, for example a version or a package that never existed, and
// about a full disk.
const ours = `checksum mismatch|SECURITY ERROR|unknown revision|malformed|errors parsing|no space left on device|` +
	`Unable to locate package|has no installation candidate|E: No such script: |Couldn't find these debs: `

// Unfetched marks a failed download from other machines, which does not depend on the tree. hack/outcome recognizes the
// error by its first word. An error of the tree or of this machine is returned unchanged.
func Unfetched(err error) error {
	if regexp.MustCompile(ours).MatchString(err.Error()) {
		return err
	}
	return fmt.Errorf("INFRA: it could not be downloaded: %w", err)
}
