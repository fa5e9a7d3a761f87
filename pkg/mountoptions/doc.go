// Package mountoptions knows the mount options that may be asked for of a volume, by the form in which the volume
// reaches a node, and the filesystems that may be named. Backends offer them (backends.Access.Mountable), so that a
// class that cannot be mounted is refused before anything is provisioned for it, and the node checks them again before
// it formats or mounts.
//
// It is a leaf: it knows the contract only, and never the kernel. Package nfs has the list of its own filesystem.
package mountoptions
