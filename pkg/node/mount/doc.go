// Package mount attaches filesystems and directories to the file tree by system calls. It executes no command, so it
// needs no mount(8) and no shell. It finds out what is mounted at a path with statx(2) on that one path. The whole of
// mountinfo (Table) is only for questions that statx cannot answer, as when a record was lost.
//
// It uses the mount API of Linux 5.14 (fsopen, fsmount, open_tree, mount_setattr, move_mount; see fsopen(2) and
// mount_setattr(2)). A mount is completed while nothing can see it, and appears at its target in one step. So a
// read-only bind mount is never writable, a mount that was given up at a deadline never appears later, and a killed
// process leaves nothing, because an unattached mount goes with its last descriptor. Errors contain the kernel's
// message about a refused option.
package mount
