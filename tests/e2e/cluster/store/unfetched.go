package store

import (
	"fmt"
	"regexp"
)

// ours is what programs say of what the tree itself has wrong, such as a version or a package that there never was.
const ours = `checksum mismatch|SECURITY ERROR|unknown revision|malformed|errors parsing|no space left on device|` +
	`Unable to locate package|has no installation candidate|E: No such script: |Couldn't find these debs: `

// Unfetched says that what an entry is made from could not be had from the machines of others, whatever the tree is
// like. hack/outcome knows that by its first word. An error of the tree or of this machine stays as it is.
func Unfetched(err error) error {
	if regexp.MustCompile(ours).MatchString(err.Error()) {
		return err
	}
	return fmt.Errorf("INFRA: it could not be downloaded: %w", err)
}
