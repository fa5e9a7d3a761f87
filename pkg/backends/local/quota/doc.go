// Package quota bounds the contents of a directory with a project quota of its filesystem. xfs and ext4 support them if
// they are mounted with the option prjquota.
//
// Each file belongs to a project, which is a number, and inherits the project of its directory when it is created. The
// filesystem counts the blocks of each project and refuses more than its limit (quotactl(2), ioctl_fsgetxattr(2)).
//
// It bounds programs, not attackers. The owner of a file may change its project, unless the owner is in a user
// namespace of its own. On ext4 a process with CAP_SYS_RESOURCE, which containers have only if they are privileged or
// ask for it, is not bounded.
package quota
