package volume

import (
	"maps"
	"strings"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/secret"
)

// The context maps travel through the orchestrator and back, and PersistentVolumes keep them for years. So they have a
// version, and a driver refuses an unknown one.
const (
	ownPrefix      = "stowage.dev/" // of the driver's own keys, which no backend has
	versionKey     = ownPrefix + "context"
	contextVersion = "1"
)

// foreign reports whether a key is the driver's own or one that Kubernetes adds to a volume context: pod details,
// tokens of service accounts, the provisioner's identity. Backends never get these.
func foreign(key string) bool {
	return strings.HasPrefix(key, ownPrefix) || strings.HasPrefix(key, "csi.storage.k8s.io/") ||
		strings.HasPrefix(key, "storage.kubernetes.io/")
}

// EncodeContext returns a volume context or a publish context with the settings for the node (in their canonical form)
// and the backend's attributes. No setting has the name of an attribute.
func EncodeContext(settings, attributes map[string]string) map[string]string {
	context := map[string]string{versionKey: contextVersion}
	maps.Copy(context, attributes)
	maps.Copy(context, settings)
	return context
}

// Provisioned reports whether this driver created the volume of a volume context. The author of a handwritten
// PersistentVolume can claim that too, for a volume that the author may name, and harms only that volume.
func Provisioned(context map[string]string) bool {
	_, ok := context[versionKey]
	return ok
}

// DecodeContext undoes EncodeContext; keys names the settings. A context without a version is from a handwritten
// PersistentVolume, and counts as the first version.
//
// Kinds: Invalid for a version that this driver does not know.
func DecodeContext(context map[string]string, keys []string) (settings, attributes map[string]string, err error) {
	if version, ok := context[versionKey]; ok && version != contextVersion {
		return nil, nil, backends.Errorf(backends.Invalid,
			"%s is %q in the volume's context, and this driver knows version %q only: use the driver's newer release",
			versionKey, secret.Option(version), contextVersion)
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
