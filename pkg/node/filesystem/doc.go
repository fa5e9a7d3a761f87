// Package filesystem probes, checks, formats and grows what is on a block device, and never formats what
// is not proven blank.
//
// Drivers have formatted good disks because a probe that failed looked like an empty disk, and because the beginning of
// a disk was lost. Here blank is a statement of its own: without one error, every byte was zero of all that an image
// holds, or of a disk's signature areas, of the places where filesystems keep copies of what they begin with, and of
// samples (docs/design/013-blank.md). Whatever else is found has a name, if only "unknown data", and is left alone; so
// is a filesystem beside the mark of somebody else who uses the device. The probe reads the device that is held open,
// by its own list of signatures, so that no tool that is missing or times out can be misunderstood.
//
// mkfs, e2fsck and resize2fs are run as commands, with the block device locked (flock(2), the convention
// of systemd's "Locking Block Device Access"): the lock is inherited by the command and outlives this
// process, so that after a crash nothing is started beside a command that still runs. Whoever runs one waits for
// its end, and so may take longer than a call: package node makes that a work of package background.
package filesystem
