// Package mount attaches filesystems and directories to the file tree by system call: it executes no command, so that
// it needs no mount(8) and no shell, and it answers "what is mounted here" from statx(2) about the one path in
// question. The whole of mountinfo (Table) is for what that cannot tell, as when a record was lost.
//
// It uses the mount API of Linux 5.14 (fsopen, fsmount, open_tree, mount_setattr, move_mount; see
// fsopen(2) and mount_setattr(2)). A mount is made whole while nothing can see it, and appears at its
// target in one step: a read-only bind is never writable for an instant, a mount that was given up on at a
// deadline never shows up later, and a process that is killed half-way leaves nothing, because an unattached
// mount goes with the last descriptor. What the kernel has to say about a refused option is in the error.
package mount
