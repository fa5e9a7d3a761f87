// Command run runs tests in a virtual machine with a Debian kernel, for tests that need features that the current
// machine lacks: the NFS server, disks that can be plugged in, or the right to grow a mounted ext4. `make vm-test` runs
// it.
//
//	run [-run REGEXP] [-timeout 15m] [-seed N] [PACKAGE...]    without packages, those listed in suites.go
//
// For a package that is listed there, it runs the listed tests, unless -run is set.
//
// It builds the tests of the packages (go test -c), boots one guest, runs one test binary after another in it, and
// prints events in the format of `go test -json`, which hack/testsum reads. Its own messages go to standard error. The
// first names the guest's kernel, because Debian's updates bring new ones.
//
// # Design
//
// Package image builds the kernel and the disk once for each list of Debian packages, and caches them. The command
// init, built from the tree each time, is the guest's first process. The guest sees one folder of the host, with the
// test binaries (package qemu, virtiofs). It sends its results through a serial port (package wire). QEMU uses KVM if
// it works and otherwise translates; then starting a process takes 0.2 s, and tests take about five times as long.
//
// Nothing outlives a run: the kernel kills QEMU when this process dies, and the next run removes leftovers (package
// workspace).
package main
