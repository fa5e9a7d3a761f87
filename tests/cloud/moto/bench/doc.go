// Command bench measures how fast the driver takes EBS volumes through their life, and what it asks EC2 for.
//
//	go run ./tests/cloud/moto/bench -binary bin/stowage
//
// It starts moto, a proxy that adds a delay to each request for EC2, and `stowage controller --backend=ebs` with the
// proxy for its endpoint, and speaks CSI to it, as csi-provisioner and csi-attacher do: first for one volume after the
// other, then for many at a time. The rates at which the driver asks are raised by a configuration file, since moto,
// unlike an account with AWS, has no limits.
//
// In the same run, before and after each phase, it measures the floor: the same requests by a bare client of the SDK
// through the same proxy, one after the other. A phase for one volume is compared with the three requests that it
// cannot do without (two looks, before and after, and the change), for numbers of two machines, or of two minutes on a
// shared one, cannot be compared. Nothing is asserted by time.
//
// With -listen and -endpoint it measures another driver that is served already, such as one of another project: that
// driver has to use the address of -listen as its endpoint of EC2.
package main
