// Package nfsdriver makes the NFS server fail under a whole driver, on a real kernel, in every way that package nfsd
// offers, during each of CSI's calls. It checks the caller's results and their times, that volumes on another server
// are not affected, and that failed calls succeed once the server works again, without leftovers or manual repair.
//
// TestFaults prints a table. With -full it has more rows of the same kinds.
package nfsdriver
