// Package images makes, without a registry, the container images that a cluster needs, under the names by which
// manifests know them: the official tests' helpers, the CSI sidecars, the pause container and the driver itself. Each
// is an archive as `docker save` writes them, which containerd imports.
package images
