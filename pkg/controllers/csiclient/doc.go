// Package csiclient lets controllers ask a driver for volumes through its CSI socket, as csi-provisioner does.
//
// Controllers know no backend: the driver's edge decodes, locks and checks their requests like any other's, so volumes
// of sets and of claims are created in the same way.
package csiclient
