// Package scrub empties a used volume, so that another user can have it.
//
// It runs in a pod that mounts only that volume. A filesystem is emptied by package tree, which follows no link and
// crosses no mount. First everything in it is renamed into a trash directory, so that a writer that was not stopped
// keeps writing there. On a block device every byte is set to zero. Success means that the volume was checked after the
// last step and was empty: a filesystem and a device of up to 1 GiB in full, a larger device at its ends, at the places
// where filesystems keep copies of their beginning, and in samples.
package scrub
