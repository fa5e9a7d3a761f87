package discovery

import (
	"context"
	"os"
	"strings"

	"github.com/stowage-csi/stowage/pkg/node/filesystem"
)

// noSignature is the contents of a device that nothing tells of, whether it is blank or not.
const noSignature = "none"

// Contents tells what is on an open device, so that a later look finds whether that is still the same filesystem.
func Contents(ctx context.Context, f *os.File, sizeBytes int64) (string, error) {
	found, err := filesystem.Probe(ctx, f, sizeBytes)
	return contentsOf(found), err
}

func contentsOf(found filesystem.Found) string {
	if found.Type == "" || found.Type == filesystem.UnknownData {
		return noSignature
	}
	return strings.TrimSpace(found.Type + " " + found.UUID)
}

// isLeft reports whether what is found on a device is what its last wipe has left. A wipe that changes nothing leaves
// whatever was there; what somebody puts there afterwards is his.
func (h History) isLeft(found filesystem.Found) bool {
	now := contentsOf(found)
	return h.Wiped.Clean(found.Type, filesystem.UnknownData) && (h.Left == "" || now == h.Left || now == noSignature)
}
