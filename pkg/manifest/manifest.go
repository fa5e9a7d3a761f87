package manifest

import "strconv"

// key is the manifest's key.
const key = "stowage.dev/lists-own-volumes"

// Encode returns the manifest of a driver that lists the volumes of its own cluster alone, or those of others too.
func Encode(listsOwn bool) map[string]string {
	return map[string]string{key: strconv.FormatBool(listsOwn)}
}

// ListsOwn reports whether the manifest says that the driver lists the volumes of its own cluster alone.
func ListsOwn(manifest map[string]string) bool { return manifest[key] == strconv.FormatBool(true) }
