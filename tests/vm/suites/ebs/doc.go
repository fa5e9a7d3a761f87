// Package ebs runs a whole driver with the ebs backend on an instance with real disks. When the strict EC2 API of
// package ec2 attaches a volume, it is plugged into the guest as an NVMe disk with EBS's serial number, on PCI by QEMU
// (package hotplug) or by the guest's own kernel (package nvmet). When the API detaches it, it is unplugged.
//
// Volumes go through all of CSI's calls and return under other names. Disks are late, missing, too small, duplicated,
// swapped, or removed while in use. A wrong disk is refused, and nothing is written to it.
//
// There is no second machine: a volume that returns is plugged into the same one, with its other disks renumbered.
package ebs
