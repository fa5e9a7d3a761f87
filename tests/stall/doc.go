// Package stall serves a directory as a FUSE filesystem that can be made to hang and to answer again: the dead server
// of a network filesystem, for tests of code that must not wait for one.
//
// The server is a separate process, which is stopped by a signal (SIGSTOP), at once or at the n-th request of some
// kind. So calls really hang in the kernel. The server is killed with the test that started it, however that ends. Then
// the connection ends too, and hanging calls fail (ENOTCONN): nothing stays in the kernel for ever. A program that
// serves calls Main from its TestMain, before anything else.
package stall
