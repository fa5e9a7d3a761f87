package volumeset

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// templateDigest tells one template from another. It is written to each volume and must not change with the program's
// version, so that it covers the fields as they are serialized.
func templateDigest(template v1alpha1.PersistentVolumeTemplate) string {
	text, err := json.Marshal(template)
	if err != nil {
		panic(err) // It holds nothing but strings and a quantity.
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}
