package store

import (
	"os"
	"path/filepath"
)

// CacheDir is a folder of that name in the cache of all that is made outside the tree: beside the Makefile's tools and
// what hack/image keeps.
func CacheDir(name string) string {
	cache := os.Getenv("XDG_CACHE_HOME")
	if cache == "" {
		cache = filepath.Join(os.Getenv("HOME"), ".cache")
	}
	if !filepath.IsAbs(cache) {
		cache = "/tmp/.cache"
	}
	return filepath.Join(cache, "stowage", name)
}
