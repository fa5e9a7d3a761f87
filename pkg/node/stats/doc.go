// Package stats measures the size and the usage of a mount by system calls.
//
// It only measures. Package node knows which path belongs to which volume, and calls this package only after it has
// proven that the path is that volume's mount.
package stats
