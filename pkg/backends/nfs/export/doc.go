// Package export reaches what NFS servers export: it names exports, and mounts them.
//
// The kernel is asked directly (fsopen(2)): no helper program runs, nothing of an address or an option ever passes
// through a string that is split again, and the controller's own mounts are attached nowhere. They are open
// descriptors, which no other process sees and which are gone with the process, however it ends.
package export
