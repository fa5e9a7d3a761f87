// Package nfs drives the nfs backend from outside, as an orchestrator does: how fast volumes come and go, with how many
// on a share, and what an attacker's input and a pod's symlinks can reach.
//
// Where the kernel has no NFS a directory stands for the server; -server and -share name a real one.
package nfs
