// Package freeze finds out how an image file is used on this node, and brings what is on it to rest.
//
// A copy of an image that is being written is of no instant at all, and a filesystem on it would be torn. The
// kernel can hold back all writers of a mounted filesystem (FIFREEZE, see fsfreeze(8)), after which the image
// is as after a clean unmount. A filesystem that stays frozen takes its whole workload down, so that there is
// one way only to freeze, During, and it thaws on every way out: when the work is done, fails or panics, when
// the context ends and when a limit in time passes. What remains is kill -9: the caller notes its intent
// beforehand, and calls Thaw when it is started again.
//
// While something is frozen nothing may be written to it by the one who froze it. This package logs
// nothing; the caller does not log inside During, and keeps its own records elsewhere (Device tells).
package freeze
