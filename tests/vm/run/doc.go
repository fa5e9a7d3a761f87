// Command run runs tests in a virtual machine with a Debian kernel: those that need what the machine at hand lacks,
// such as the NFS server, disks that come and go, or the right to grow a mounted ext4. `make vm-test` runs it.
//
//	run [-run REGEXP] [-timeout 15m] [-seed N] [PACKAGE...]    without packages, those listed in suites.go
//
// Of a package that is listed there, it runs the tests that are named there, unless -run says which.
//
// It builds the tests of the packages (go test -c), boots one guest, runs one test binary after another in it, and
// prints events as `go test -json` does, for hack/testsum to read. Its own remarks go to the standard error; the first
// says which kernel the guest has, since a new one comes with Debian's updates by itself.
//
// # How it is made
//
// Package image makes the kernel and the disk once for each list of Debian packages, and keeps them in the cache. The
// command init, built from the tree each time, is the guest's first process. The guest sees one folder of the host,
// with the test binaries (package qemu, virtiofs); what happens in it comes back through a serial port (package wire).
// With KVM where that works; else QEMU translates: then starting a process takes 0.2 s, and tests take about five times
// as long.
//
// Nothing outlives a run: the kernel kills QEMU when this process dies, and the next run removes what is left (package
// workspace).
package main
