// Package quota bounds what a directory holds, by a project quota of its filesystem: xfs and ext4 have them, when they
// are mounted with the option prjquota.
//
// Each file belongs to a project, a number, and inherits that of the directory in which it is made. The filesystem
// counts the blocks of each project and refuses more than its limit (quotactl(2), ioctl_fsgetxattr(2)).
//
// It bounds programs, not attackers: the owner of a file may give it another project, as long as he is not in a user
// namespace of his own. On ext4 a process with CAP_SYS_RESOURCE, which containers have only if they are privileged or
// ask for it, is not bounded.
package quota
