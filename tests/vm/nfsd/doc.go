// Package nfsd runs the kernel's NFS server in the guest, for tests of a client's behaviour when the server fails: the
// server is stopped, killed or restarted, its port is blocked or slow, or an export is removed, made read-only,
// replaced or filled.
//
//	server, err := nfsd.Start(ctx, nfsd.Config{})
//	err = server.Export(ctx, nfsd.Export{Path: "/srv/a"})       // 127.0.0.1:/srv/a by NFS 3, 4.1 and 4.2
//	err = server.Kill(ctx)                                      // clients hang, or fail when mounted soft
//	err = server.Resume(ctx)
//	err = server.Stop(ctx)
//
// What to use for which failure:
//
//	dead server          Server.Kill (connections are refused), Block(Drop) (packets vanish), Block(Reset)
//	slow server          Proxy.Delay; the client mounts with port=Proxy.Port()
//	broken connection    Proxy.Cut
//	restarting server    Server.Kill, Server.Resume; Config.Grace for the time in which clients reclaim
//	read-only export     Export.Options "ro"
//	squashed root        Export.Options "root_squash", which is the default of Debian's server and of this package
//	export gone          Server.Unexport
//	another thing there  Server.Export of the same path with another FSID, or with something mounted on it
//	stale file handle    the same: handles hold the FSID
//	full, or small       NewFilesystem, Filesystem.Fill
//
// The guest's kernel has only one server: Start fails while one is running, and everything here fails outside the guest
// (package inside). Clear stops a server that a dead test has left running.
package nfsd
