// Package background lets work outlive the call that began it.
//
// An orchestrator gives a call some minutes, and then repeats it. If work takes longer than a call, and the end of the
// call stops it, it starts from zero each time and never ends. So Do begins such work under a key, and returns when the
// work ends or the call's context does, whichever is first. The work continues without its call. The next call for the
// same key finds the work, waits for it, and gets its outcome, once. So after finitely many calls the work is done.
//
// Package deadline is for calls that nothing can end, such as a system call that hangs. It refuses to begin another one
// meanwhile, and undoes a late success. Here the work is still wanted, and can be told to end: Stop does that for one
// key, and returns once its work has ended; Close does it for all keys, at the end of the process. A Group is for work
// that no call waits for, but that must end, too.
package background
