// Package testfs gives tests their own real loop devices and filesystems, and removes them afterwards.
//
// The local backend's use of reflinks and frozen filesystems cannot be tested without them: a fake would only repeat
// assumptions about the kernel.
package testfs
