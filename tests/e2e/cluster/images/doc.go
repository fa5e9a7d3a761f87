// Package images builds, without a registry, the container images of a cluster, under the names that manifests use: the
// official tests' helpers, the CSI sidecars, the pause container, and the driver itself. Each is an archive in the
// format of `docker save`, which containerd imports.
package images
