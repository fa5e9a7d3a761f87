// Package filecopy copies the contents of one file to another, as cheaply as the filesystem allows.
//
// On xfs and btrfs a file is cloned: both share their blocks until one is written (ioctl_ficlone(2)), which takes no
// time and happens at one instant. On other filesystems the data is copied and the holes stay holes.
// It is a package of its own because volumes, snapshots and the files of directory volumes all need it.
package filecopy
