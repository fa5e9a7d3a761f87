// Package growth proves in the guest what most containers may not do: that the driver grows a mounted ext4 while a
// workload writes to it (ext4's resize ioctl asks for CAP_SYS_RESOURCE).
package growth
