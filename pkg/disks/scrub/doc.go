// Package scrub empties a volume that somebody has used, so that somebody else can use it.
//
// It runs in a pod that mounts nothing but that volume. A filesystem is emptied through package tree, which follows no
// link and crosses no mount. First all that is in it is renamed into a trash directory: a writer that nobody stopped
// keeps writing there. A block device becomes zero and is read again. Success says that the volume was looked at after
// the last step, and was empty.
package scrub
