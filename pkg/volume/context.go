package volume

import (
	"maps"
	"strings"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// The context maps travel through the orchestrator and back, and PersistentVolumes keep them for years:
// so they carry a version, and a driver refuses one that it does not know.
const (
	ownPrefix      = "stowage.dev/" // of the keys that are the driver's own, and no backend's
	versionKey     = ownPrefix + "context"
	contextVersion = "1"
)

// foreign are the prefixes of the driver's own keys and of those that Kubernetes adds to a volume context: pod details,
// tokens of service accounts, the provisioner's identity. They are never handed to a backend.
func foreign(key string) bool {
	return strings.HasPrefix(key, ownPrefix) || strings.HasPrefix(key, "csi.storage.k8s.io/") ||
		strings.HasPrefix(key, "storage.kubernetes.io/")
}

// EncodeContext makes a volume context or a publish context of the settings that the node obeys (in
// their canonical form) and the backend's attributes. No setting bears the name of an attribute.
func EncodeContext(settings, attributes map[string]string) map[string]string {
	context := map[string]string{versionKey: contextVersion}
	maps.Copy(context, attributes)
	maps.Copy(context, settings)
	return context
}

// Provisioned reports whether this driver made the volume that a volume context is of. Whoever writes a
// PersistentVolume by hand can say so, too, of a volume that he has the right to name, and harms none but his own.
func Provisioned(context map[string]string) bool {
	_, ok := context[versionKey]
	return ok
}

// DecodeContext undoes EncodeContext; keys names the settings. A context without a version was written
// by a person, in a PersistentVolume made by hand, and counts as the first version.
//
// Kinds: Invalid for a version that this driver does not know.
func DecodeContext(context map[string]string, keys []string) (settings, attributes map[string]string, err error) {
	if version, ok := context[versionKey]; ok && version != contextVersion {
		return nil, nil, backends.Errorf(backends.Invalid,
			"%s is %q in the volume's context, and this driver knows version %q only: use the driver's newer release",
			versionKey, version, contextVersion)
	}
	settings, attributes = map[string]string{}, map[string]string{}
	for _, key := range keys {
		if value, ok := context[key]; ok {
			settings[key] = value
		}
	}
	for key, value := range context {
		if _, ok := settings[key]; !ok && !foreign(key) {
			attributes[key] = value
		}
	}
	return settings, attributes, nil
}
