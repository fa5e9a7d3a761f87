package localpools

import (
	"os"
	"path/filepath"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends/local"
)

// The names of the pools.
const (
	Image     = "image"
	Directory = "directory"
)

// YAML is the configuration in the format of --config.
const YAML = "pools: [{name: directory, type: directory, sharesDisk: true}, {name: image, type: image}]\n"

// Config returns the same configuration for callers that open the backend themselves.
func Config() *local.Config {
	return &local.Config{Limits: Patient(), Pools: []local.PoolConfig{
		{Name: Directory, Type: "directory", SharesDisk: true}, {Name: Image, Type: "image"},
	}}
}

// Patient returns limits that no busy machine reaches: a test without retries must not be told to retry.
func Patient() local.Limits {
	const patience = 2 * time.Minute
	return local.Limits{Open: patience, Look: patience, Reclaim: patience}
}

// Flag writes the configuration into a directory and returns the flag that names it.
func Flag(dir string) (string, error) {
	path := filepath.Join(dir, "pools.yaml")
	return "--config=" + path, os.WriteFile(path, []byte(YAML), 0o600)
}
