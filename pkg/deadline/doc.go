// Package deadline gives up calls that hang in the kernel when the time of a request is over.
//
// A system call on a filesystem whose server is dead, or on a disk that does not answer, ends when the kernel has an
// answer, and no context ends it. A direct caller would keep its resources for that long, such as a volume's lock. So
// Do makes such a call in a goroutine of its own, and returns when the call ends or the context does.
//
// That brings two duties, which this package fulfils. A call that was given up may still succeed: then its effect is
// undone, because no other code knows of it. And each of these calls keeps a thread of the process: a caller that
// retries every few seconds must not pile them up. So Calls knows the calls that were given up and still run. Until
// such a call has returned, Do refuses at once to begin another one on the same thing.
package deadline
