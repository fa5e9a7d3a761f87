// Package nfsdriver breaks the NFS server under a whole driver, on a real kernel: in every way that package nfsd has,
// while each of CSI's calls is made. It shows what the caller sees and when, that volumes on another server do not
// notice, and that what failed succeeds once the server is well, with nothing left over and nobody's help.
//
// TestFaults prints a table. With -full it has more rows of the same kinds.
package nfsdriver
