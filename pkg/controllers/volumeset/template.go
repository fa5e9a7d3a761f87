package volumeset

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// templateDigest identifies a template. It is written to each volume and must be the same in all versions of the
// program, so it covers the serialized fields.
func templateDigest(template v1alpha1.PersistentVolumeTemplate) string {
	text, err := json.Marshal(template)
	if err != nil {
		panic(err) // It holds only strings and a quantity.
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}
