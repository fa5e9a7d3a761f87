// Package initrd makes the archive that the kernel unpacks before it has a disk. Here it holds one program: so the
// guest's first process is always built from this tree, and the cached image of the guest does not depend on it.
package initrd
