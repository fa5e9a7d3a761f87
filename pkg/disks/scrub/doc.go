// Package scrub empties a volume that somebody has used, so that somebody else can use it.
//
// It runs in a pod that mounts nothing but that volume. A filesystem is emptied through package tree, which follows no
// link and crosses no mount. First all that is in it is renamed into a trash directory: a writer that nobody stopped
// keeps writing there. A block device becomes zero, every byte of it. Success says that the volume was looked at after
// the last step, and was empty: a filesystem and a device of up to 1 GiB in full, a larger device at its ends, at the
// places where filesystems keep what they know themselves by, and in samples.
package scrub
