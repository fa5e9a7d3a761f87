// Package trim tells the devices of mounted filesystems which of their blocks are free (FITRIM, fstrim(8)), so
// that thin storage gets back what was deleted. The option discard does so at each deletion, and slows it down;
// this does so every so often, for those volumes whose class asks for it.
//
// A descriptor that is open on a filesystem keeps it from being unmounted, and the kernel does not stop in the
// middle of a range that it is told to trim. So a filesystem is trimmed in small ranges, and whoever is about to
// mount or unmount it pauses its trimming first, which returns once nothing is open any more.
package trim
