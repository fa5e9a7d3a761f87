// Package sanity runs csi-sanity, the community's conformance suite for CSI drivers, over every backend, with real
// mounts and devices.
package sanity
