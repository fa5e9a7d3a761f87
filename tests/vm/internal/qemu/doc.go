// Package qemu runs one guest: QEMU, and the daemon that shares a folder with it. It reports how the guest ended, and
// the console's output if the guest failed.
package qemu
