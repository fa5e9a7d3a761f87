// Package rawfile opens files as open(2) does, and no more.
//
// Package os tries to register every file that it opens with the runtime's poller, which takes five more system calls
// than opening it. Regular files and directories cannot be polled, so the calls are wasted. Files of sysfs can, and
// that wakes another thread. This package is for files that are opened with every request.
package rawfile
