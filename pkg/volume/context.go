package volume

import (
	"maps"
	"strings"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// The context maps travel through the orchestrator and back, and PersistentVolumes keep them for years:
// so they carry a version, and a driver refuses one that it does not know.
const (
	versionKey     = "stowage.dev/context"
	contextVersion = "1"
)

// foreign are the prefixes of keys that Kubernetes adds to a volume context: pod details, tokens of
// service accounts, the provisioner's identity. They are never handed to a backend.
func foreign(key string) bool {
	return key == versionKey || strings.HasPrefix(key, "csi.storage.k8s.io/") || strings.HasPrefix(key, "storage.kubernetes.io/")
}

// EncodeContext makes a volume context or a publish context of the settings that the node obeys (in
// their canonical form) and the backend's attributes. No setting bears the name of an attribute.
func EncodeContext(settings, attributes map[string]string) map[string]string {
	context := map[string]string{versionKey: contextVersion}
	maps.Copy(context, attributes)
	maps.Copy(context, settings)
	return context
}

// DecodeContext undoes EncodeContext; keys names the settings. A context without a version was written
// by a person, in a PersistentVolume made by hand, and counts as the first version.
//
// Kinds: Invalid for a version that this driver does not know.
func DecodeContext(context map[string]string, keys []string) (settings, attributes map[string]string, err error) {
	if version, ok := context[versionKey]; ok && version != contextVersion {
		return nil, nil, backends.Errorf(backends.Invalid,
			"%s is %q in the volume's context, and this driver knows version %q only: use the driver's newer release", versionKey, version, contextVersion)
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
