// Package background lets work outlive the call that began it.
//
// An orchestrator gives a call some minutes and makes it again. Work that takes longer than a call, and
// that the end of the call stops, starts from zero each time and never ends. So such work is begun under
// a key, by Do, which returns when the work ends or the call's context does, whichever is first. The work
// goes on without its call. The next call for the same key finds the work and waits for it, and gets what
// became of it, once. So after finitely many calls the work is done.
//
// Package deadline is for what nothing can end, a system call that hangs; it refuses to begin the like and
// undoes what comes late. Here the work is wanted all the same, and can be told to end: Stop does that for
// what a key stands for, and returns once nothing of it is under way any more; Close does it for all, at
// the end of the process. A Group is for work that no call waits for, and that has to end all the same.
package background
