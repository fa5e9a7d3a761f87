// Package filesystem probes, checks, formats and grows what is on a block device, and never formats a device that is
// not proven blank.
//
// Drivers have formatted good disks because a failed probe looked like an empty disk, and because the beginning of a
// disk was lost. Here blank has to be proven: every byte was read without an error and was zero, of everything that an
// image holds, or of a disk's signature areas, of the places where filesystems keep copies of their beginning, and of
// samples (docs/design/013-blank.md). Anything else gets a name, if only "unknown data", and is left alone. So is a
// filesystem beside the signature of another user of the device. The probe reads the device that is held open with its
// own list of signatures, so that no missing tool and no timeout can be misunderstood.
//
// mkfs, e2fsck and resize2fs are run as commands, with the block device locked (flock(2), the convention of systemd's
// "Locking Block Device Access"). The command inherits the lock, which outlives this process, so that after a crash
// no command is started on a device on which another still runs. A caller waits for the end of the command, which may
// take longer than a CSI call: package node does that with package background.
package filesystem
