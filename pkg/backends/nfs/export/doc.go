// Package export names and mounts the exports of NFS servers.
//
// It calls the kernel directly (fsopen(2)). No helper program runs, and no part of an address or an option passes
// through a string that is split again. The controller's own mounts are not attached anywhere. They are open
// descriptors, which no other process sees and which end with the process in any case.
package export
