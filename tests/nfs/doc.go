// Package nfs tests the nfs backend from outside, as an orchestrator uses it: the speed of volumes' life cycles, with
// many volumes on a share, and the reach of an attacker's input and of a pod's symlinks.
//
// If the kernel has no NFS, a directory simulates the server; -server and -share name a real one.
package nfs
