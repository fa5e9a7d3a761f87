// Package nvmet gives the guest NVMe disks that its own kernel serves to it over the loopback network. Unlike those of
// QEMU they can have any model, grow while they are in use, and be torn away without a word.
//
//	disk, err := nvmet.Plug(ctx, nvmet.Disk{Serial: "vol0123456789abcdef0", Model: "a disk", File: path})
//	err = disk.Grow(ctx, 2<<30)
//	err = disk.Unplug(ctx)
//
// It drives the kernel's NVMe target (nvmet) through configfs and the NVMe host through /dev/nvme-fabrics; the host's
// part, from the scan of a changed namespace upwards, is the same for disks on PCI.
package nvmet
