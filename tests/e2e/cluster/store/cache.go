package store

import (
	"os"
	"path/filepath"
)

// CacheDir returns the folder of that name in the cache for everything that is built outside the tree, beside the
// Makefile's tools and hack/image's files.
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
