// Package stall serves a directory as a FUSE filesystem that can be made to hang and to answer again: the dead
// server of a network filesystem, for tests of what must not wait for one.
//
// The server is a process of its own, which is stopped by a signal (SIGSTOP), at once or at the n-th request of
// some sort. So what hangs hangs in the kernel, for real. It is killed with the test that started it, however
// that ends; with the server goes the connection, and whatever hangs fails (ENOTCONN): nothing stays in the
// kernel for ever. A program that serves calls Main from its TestMain, before anything else.
package stall
