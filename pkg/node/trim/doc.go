// Package trim tells the devices of mounted filesystems which of their blocks are free (FITRIM, fstrim(8)), so that
// thin storage gets back the space of deleted data. The mount option discard does so at each deletion, and slows
// deletions down. This package does so at intervals, for the volumes whose class asks for it.
//
// An open descriptor on a filesystem keeps it from being unmounted, and the kernel does not stop in the middle of a
// range that it trims. So a filesystem is trimmed in small ranges. Code that mounts or unmounts it first calls Pause,
// which returns once nothing is open any more.
package trim
