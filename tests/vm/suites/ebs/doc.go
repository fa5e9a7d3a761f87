// Package ebs runs a whole driver with the ebs backend on an instance whose disks are real: what the strict EC2 API of
// package ec2 attaches is plugged into the guest as an NVMe disk with EBS's serial number, on PCI by QEMU (package
// hotplug) or by the guest's own kernel (package nvmet), and what it detaches is taken away.
//
// Volumes live through all of CSI's calls and come back under other names; disks are late, missing, too small, doubled,
// swapped, or pulled while they are in use. What is wrong is refused, and nothing is written to it.
//
// Left out is a second machine: a volume that comes back is plugged into the same one, with its other disks renumbered.
package ebs
