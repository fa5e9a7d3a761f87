// Package device finds a block device, proves that it is the right one and holds it open.
//
// The worst that a driver can do is to format or mount the wrong disk. A path says little: by-id links
// go stale, and names are given to other disks. So a path is only a hint here. What it leads to is opened,
// and what the open device itself says (its type, size and serial number, through ioctl and sysfs) is
// compared with what it must be; whatever differs or cannot be read ends the operation. As long as the
// device is held open the kernel gives its number to no other, so that what was proven is also what is
// formatted and mounted.
//
// An image file becomes a device through a loop device of the kernel (loop(4), LOOP_CONFIGURE of
// Linux 5.8). A file is never attached twice: two page caches over one filesystem destroy it. A loop device
// for a filesystem clears itself with the last use, so that nothing that dies leaves one behind; one for a
// raw volume stays until Detach, because a bind mount of its node does not count as use.
package device
