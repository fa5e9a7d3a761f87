// Package share keeps exports mounted for as long as somebody works on them, and knows the driver's own directory
// there.
//
// A Pool has one mount for each server and export, shared by all that is done there and dropped when it is idle. Work
// on a share runs by pkg/deadline: it returns at its deadline whatever the server does, a call that hangs makes all
// further calls on that share fail at once until it has come back, and the number of those that can hang is bounded.
// Other shares know nothing of it. A mount whose handles are stale is replaced by a new one, and the work done again;
// where something was denied, the next call has a new one, because the kernel would not ask the server again.
//
// Nothing here syncs a directory: a server of NFS has made each change of one durable when it answers (RFC 1813, 4.8),
// and the client's fsync of a directory does nothing. What is written to a file is synced.
//
// Home is the directory .stowage at the root of the share. All that the driver believes is in there, where no pod's
// mount reaches, and everything goes through safepath.Root, so that no name leads out of it, and no symlink is
// followed.
package share
