package ownership

import "golang.org/x/sys/unix"

// The permissions that a group gets.
const (
	readWrite  = 0o660
	readOnly   = 0o440
	directory  = 0o110 | unix.S_ISGID
	everything = 0o7777
)

// wanted is the wanted state of an entry.
type wanted struct {
	gid      uint32
	readOnly bool
}

// mode returns an entry's permissions with those that the group needs added.
func (w wanted) mode(stat unix.Stat_t) uint32 {
	mode := stat.Mode & everything
	switch {
	case isType(stat, unix.S_IFLNK):
		return mode
	case w.readOnly:
		mode |= readOnly
	default:
		mode |= readWrite
	}
	if isType(stat, unix.S_IFDIR) {
		mode |= directory
	}
	return mode
}

// met reports whether an entry is as wanted.
func (w wanted) met(stat unix.Stat_t) bool {
	return stat.Gid == w.gid && stat.Mode&everything == w.mode(stat)
}

func isType(stat unix.Stat_t, fileType uint32) bool { return stat.Mode&unix.S_IFMT == fileType }
