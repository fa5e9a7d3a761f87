// Package growth tests in the guest a case that most containers may not run: the driver grows a mounted ext4 while a
// workload writes to it (ext4's resize ioctl requires CAP_SYS_RESOURCE).
package growth
