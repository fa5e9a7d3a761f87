// Package stats reads how large and how full what is mounted is, by system call.
//
// It measures and nothing else: which path belongs to which volume is known to package node, which asks
// here only once it has proven that the path is that volume's mount.
package stats
