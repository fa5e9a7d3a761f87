// Package mountoptions knows the mount options that are allowed for a volume, by the form in which the volume reaches a
// node, and the filesystems that may be named. Backends offer them (backends.Access.Mountable), so that a class that
// cannot be mounted is refused before anything is provisioned for it. The node checks them again before it formats or
// mounts.
//
// It is a leaf: it knows only the contract, and does not access the kernel. Package nfs has the list for its own
// filesystem.
package mountoptions
