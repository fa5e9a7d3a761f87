// Package nfs shows that the guest's NFS server and client work, and that package nfsd does to them what it says: the
// tests of the nfs backend stand on it.
package nfs
