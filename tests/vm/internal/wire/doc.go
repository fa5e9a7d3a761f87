// Package wire defines the messages between the host and the guest. The host writes a Job to the shared folder before
// it boots the guest. The guest sends Frames over its second serial port while it works.
package wire
