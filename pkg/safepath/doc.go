// Package safepath is the only way from a string that came from outside to a path.
//
// Two things go wrong between a string and a file. The string says something else than it seems to
// (".." elements, NUL bytes, names that are paths), or the file system changes between the check and the
// use (a symlink takes the place of a directory). Name and Absolute settle the first. Target settles the
// second: it holds the parent directory open and reaches the last element through that descriptor only,
// with openat2(2) and RESOLVE_NO_SYMLINKS, so that a name can be swapped but never followed.
//
// Symlinks in the parent's path are followed once, when it is opened: a kubelet's directory may well be
// a link to another disk, and nobody but root can write there.
//
// It needs Linux 5.6 (openat2) and looks at nothing but its arguments.
package safepath
