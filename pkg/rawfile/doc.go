// Package rawfile opens files as open(2) does, and no more.
//
// Package os offers every file that it opens to the runtime's poller, which takes five more system calls than opening
// it. Regular files and directories cannot be polled, so that it is for nothing; files of sysfs can, and the answer
// wakes another thread. It is for what is opened with every request.
package rawfile
