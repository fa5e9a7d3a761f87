// Package qemu runs one guest: QEMU, and the daemon that shares a folder with it. It tells how the guest ended, or what
// was on its console when it did not end well.
package qemu
