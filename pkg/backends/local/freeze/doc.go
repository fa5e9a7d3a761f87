// Package freeze finds out how an image file is used on this node, and freezes the filesystems on it.
//
// A copy of an image that is being written to shows no single instant, and a filesystem on it would be torn. The kernel
// can block all writers of a mounted filesystem (FIFREEZE, see fsfreeze(8)). The image is then as after a clean
// unmount. A filesystem that stays frozen blocks its whole workload. Therefore During is the only way to freeze, and it
// always thaws: when the work is done, fails or panics, when the context ends and when a time limit passes. The
// exception is kill -9: the caller notes its intent beforehand, and calls Thaw when it is started again.
//
// While a filesystem is frozen, the caller of During must not write to it. This package logs nothing. The caller does
// not log inside During, and keeps its own records elsewhere (see Device).
package freeze
