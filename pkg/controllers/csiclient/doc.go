// Package csiclient lets controllers ask a driver for volumes through its CSI socket, as csi-provisioner does.
//
// Controllers know no backend: the driver's edge decodes, locks and checks their requests like any other's, so that a
// volume of a pool and a volume of a claim are made in the same way.
package csiclient
