package manifest

import "strconv"

// key is the key in the manifest.
const key = "stowage.dev/lists-own-volumes"

// Encode returns the manifest of a driver that lists only the volumes of its own cluster, or also those of others.
func Encode(listsOwn bool) map[string]string {
	return map[string]string{key: strconv.FormatBool(listsOwn)}
}

// ListsOwn reports whether the manifest declares that the driver only lists the volumes of its own cluster.
func ListsOwn(manifest map[string]string) bool { return manifest[key] == strconv.FormatBool(true) }
