// Command bench measures the speed of the life cycle of EBS volumes with the driver, and its requests to EC2.
//
//	go run ./tests/cloud/moto/bench -binary bin/stowage
//
// It starts moto, a proxy that delays each request to EC2, and `stowage controller --backend=ebs` with the proxy as its
// endpoint. It makes CSI calls as csi-provisioner and csi-attacher do: first for one volume after the other, then for
// many at a time. A configuration file raises the driver's request rates, because moto, unlike an AWS account, has no
// limits.
//
// In the same run, before and after each phase, it measures the floor: the same requests by a bare client of the SDK
// through the same proxy, one after the other. A phase for one volume is compared with the three requests that it needs
// (a read before and after, and the change), because numbers from two machines, or from two minutes on a shared one,
// are not comparable. No time is asserted.
//
// With -listen and -endpoint it measures another driver that is already running, for example one of another project.
// That driver must use the address of -listen as its EC2 endpoint.
package main
