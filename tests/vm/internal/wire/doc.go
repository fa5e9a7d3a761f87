// Package wire is what the host and the guest say to each other: the host leaves a Job in the shared folder before
// it boots the guest, and the guest sends Frames over its second serial port while it works.
package wire
