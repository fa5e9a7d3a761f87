// Package nfsd runs the kernel's NFS server in the guest, for tests of what happens to a client when things go wrong:
// the server is stopped, killed or started again, its port is blocked or slow, an export is taken away, made read-only
// or another thing, or is full.
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
// There is one kernel and so one server: Start fails while another is running, and everything here fails outside the
// guest (package inside). A test that died may have left a server running: Clear.
package nfsd
