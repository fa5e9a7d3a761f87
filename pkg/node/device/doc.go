// Package device finds a block device, proves that it is the right one and holds it open.
//
// The worst that a driver can do is to format or mount the wrong disk. A path proves little: by-id links go stale, and
// names are reused for other disks. So a path is only a hint here. This package opens what the path leads to and
// compares what the open device itself reports (its type, size and serial number, through ioctl and sysfs) with what it
// must be. Any value that differs or cannot be read ends the operation. While the device is held open, the kernel does
// not reuse its number, so the device that was proven is also the one that is formatted and mounted.
//
// An image file becomes a device through a loop device of the kernel (loop(4), LOOP_CONFIGURE of Linux 5.8). A file is
// never attached twice: two page caches for one filesystem destroy it. A loop device for a filesystem is freed with its
// last use, so that a process that dies leaves none behind. A loop device for a raw volume stays until Detach, because
// a bind mount of its node does not count as use.
package device
