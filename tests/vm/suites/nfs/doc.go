// Package nfs checks that the guest's NFS server and client work, and that package nfsd does what it documents. The
// tests of the nfs backend depend on it.
package nfs
