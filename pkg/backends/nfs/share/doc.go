// Package share keeps exports mounted while they are in use, and knows the driver's own directory there.
//
// A Pool has one mount for each server and export. All work there shares it, and it is dropped when it is idle. Work on
// a share runs by pkg/deadline: it returns at its deadline whatever the server does. A call that hangs makes all
// further calls on that share fail at once until it returns, and the number of calls that can hang is limited. Other
// shares are not affected. A mount whose handles are stale is replaced by a new one, and the work is repeated. After a
// denied call, the next call gets a new mount, because the kernel would not ask the server again.
//
// The package syncs no directory: an NFS server has made each change of a directory durable when it answers (RFC 1813,
// 4.8), and the client's fsync of a directory does nothing. Data in files is synced.
//
// Home is the directory .stowage at the root of the share. It holds all data that the driver trusts, and no pod's mount
// reaches it. All access goes through safepath.Root, so that no name leads outside, and no symlink is followed.
package share
