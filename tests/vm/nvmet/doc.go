// Package nvmet gives the guest NVMe disks that its own kernel serves over the loopback network. Unlike QEMU's, they
// can have any model, grow while in use, and be removed without notice.
//
//	disk, err := nvmet.Plug(ctx, nvmet.Disk{Serial: "vol0123456789abcdef0", Model: "a disk", File: path})
//	err = disk.Grow(ctx, 2<<30)
//	err = disk.Unplug(ctx)
//
// It controls the kernel's NVMe target (nvmet) through configfs, and the NVMe host through /dev/nvme-fabrics. From the
// scan of a changed namespace upwards, the host's code is the same as for disks on PCI.
package nvmet
