// Package powerloss cuts the power under the local backend at every write and checks that what it keeps is consistent.
//
//	go test -v ./tests/powerloss                         a sample: all that was acknowledged, and some of the rest
//	go test -v ./tests/powerloss -full -timeout 1h       every cut
//	go test -v ./tests/powerloss -fs xfs -seed 4711      one filesystem, and the choices of an earlier run
//
// # Method
//
// A drive is a disk in memory that a FUSE server serves as a file, with a loop device over it. So each write of the
// block layer arrives as WRITE, each flush (REQ_OP_FLUSH, by vfs_fsync) as FSYNC, a forced unit access, which a loop
// device does not know, as a write and a flush, and a discard or a write of zeros as FALLOCATE; TestTheDriveIsAsked
// shows it. On the drive is a real ext4, xfs or btrfs, and on that the local backend with both of its pools. A script
// takes volumes, snapshots and groups through all that the backend can do. The journal holds every write and flush in
// the one order in which the drive saw them, and among them when each operation began and when it was acknowledged. The
// script runs twice: quiet, one operation after the other; and restless, three tracks side by side while the filesystem
// is synced at random moments, so that steps come to the drive which no sync of the backend has asked for.
//
// A cut is a place in the journal. There the drive is made again as a power loss would leave it, under two models:
//
//   - strict: every write up to the cut is there, for a cut after each write.
//   - cached: what was written before the last flush is there. Of what was written since, a drive with a cache keeps
//     anything: nothing, all but one, only the last ones, or a random choice in which a third of the writes are torn
//     between sectors. There is a cut before each flush and after each acknowledgement.
//
// The filesystem recovers, in another boot as far as the backend can tell, the backend opens, and then this must hold:
//
//   - What was acknowledged is there with its size, fingerprint, source, allocation and mutable parameters and with the
//     data that its user had synced; what was acknowledged as deleted is not; a volume deleted with onDelete=retain is
//     in retained/.
//   - What was in flight is whole or gone; a group with all its members or none.
//   - The backend opens, without a warning; staging/, trash/ and quarantine/ are empty; what can still be promised and
//     what is there come out to the byte; a full image has all its blocks.
//   - Every volume has a source; everything can be deleted, and then all of the capacity is there again.
//
// TestSecondLoss does the same to the recovery from a loss. TestTheTestSees plants bugs: a drive that does not hear its
// last flushes, and a backend whose syncs of one sort are not made, by a filter on its system calls. The journaling
// filesystems make up for some of these; the table says which.
//
// # What it does not cover
//
//   - Writes are reordered only between two flushes, and never lost before one: a drive that lies about flushes breaks
//     every filesystem. Sectors hold the old or the new data, never anything else.
//   - The drive with xfs has sectors of 4096 bytes, and mkfs is told so; those with ext4 and btrfs have 512. xfs writes
//     the blocks of its metadata in place, and takes from the first sector of one whether its log has anything newer:
//     where only that sector came through, it does not repair the rest, and refuses the mount with a wrong checksum.
//     With every write torn between 512 bytes that was so after 6 of 1,338 cuts in a recovery, between 4096 bytes after
//     none of 1,329.
//   - A superblock that ext4 or btrfs writes in place is not torn. ext4 does not mount with a torn one, whoever uses
//     it. For btrfs that has not been shown: mounts that were refused now and then were not seen any more with the
//     exemption, and were not seen either in 700 cuts made to provoke them. A mount that is refused is counted apart,
//     and fails the test too.
//   - The subsets of writes are a sample, and so are the moments of the restless script: a recording cannot be
//     repeated, only the choices made in it. What a filesystem would be allowed to do by POSIX, and these three on this
//     kernel do not, is not seen.
//   - The contents of images in use: they are their users' business. The script writes to them and syncs as a user
//     would, and only what was synced is looked for. Freezing a mounted filesystem for a snapshot is not in the script.
//   - Pools on several filesystems, and a data directory on another one than its pools.
//   - A process that is killed while the machine runs on: that is tests/crash.
//
// Everything that the test mounts and attaches is gone when its process ends, however that ends: it has a mount
// namespace of its own, its loop devices detach themselves, and a guard breaks the FUSE connection off. Its directory
// is removed by the next run.
package powerloss
