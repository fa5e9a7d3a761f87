// Package testfs gives tests real loop devices and filesystems of their own, and takes them away again.
//
// What local does with reflinks and frozen filesystems cannot be tested without: a fake would only repeat
// what we believe of the kernel.
package testfs
