// Package deadline gives up what hangs in the kernel when the time of a request is over.
//
// A system call on a filesystem whose server is dead, or on a disk that does not answer, ends when the
// kernel has an answer, and no context ends it. Whoever makes it directly keeps what he holds, such as
// a volume's lock, for as long. So such a call is made in a goroutine of its own, by Do, which returns
// when the call ends or the context does.
//
// Two duties come with that, and this package has both. A call that was given up may succeed yet: what it
// made is undone then, because nobody else knows of it. And each one keeps a thread of the process: whoever
// asks again every few seconds must not pile them up. So Calls knows what was given up and still runs, and
// until that has come back Do refuses to begin the like, at once.
package deadline
