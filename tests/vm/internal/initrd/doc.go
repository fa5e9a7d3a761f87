// Package initrd creates the archive that the kernel unpacks before it has a disk. It contains only the guest's first
// process, which is therefore always built from this tree, so that the cached image does not depend on it.
package initrd
