// Package filecopy makes one file hold what another holds, as cheaply as the filesystem allows.
//
// On xfs and btrfs a file is cloned: both share their blocks until one is written (ioctl_ficlone(2)), which
// takes no time and happens at one instant. Elsewhere the data is copied and the holes stay holes.
// Volumes, snapshots and the files of directory volumes all need this, hence a package of its own.
package filecopy
