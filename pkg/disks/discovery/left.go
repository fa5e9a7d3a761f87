package discovery

import (
	"context"
	"os"
	"strings"

	"github.com/stowage-csi/stowage/pkg/node/filesystem"
)

// noSignature stands for the contents of a device without a known signature, blank or not.
const noSignature = "none"

// Contents describes what is on an open device, so that a later look can tell whether it still holds the same
// filesystem.
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

// isLeft reports whether the last wipe left what is found on a device. A wipe that changes nothing leaves whatever was
// there; later contents belong to another user.
func (h History) isLeft(found filesystem.Found) bool {
	now := contentsOf(found)
	return h.Wiped.Clean(found.Type, filesystem.UnknownData) && (h.Left == "" || now == h.Left || now == noSignature)
}
