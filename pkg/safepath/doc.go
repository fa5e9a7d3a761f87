// Package safepath is the only way to turn an external string into a path.
//
// Two things go wrong between a string and a file. The string means something else than it seems to (".." elements, NUL
// bytes, names that are paths), or the filesystem changes between the check and the use (a symlink replaces a
// directory). Name and Absolute prevent the first. Target prevents the second: it holds the parent directory open and
// reaches the last element only through that descriptor, with openat2(2) and RESOLVE_NO_SYMLINKS. A name can be
// swapped, but is never followed.
//
// Symlinks in the parent's path are followed once, when it is opened: a kubelet's directory may be a link to another
// disk, and only root can write there.
//
// The package needs Linux 5.6 (openat2) and depends only on its arguments.
package safepath
