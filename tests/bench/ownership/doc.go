// Command ownership measures how fast the files of a volume are given to a pod's group, and compares that with the
// kubelet's own method and chown(1).
//
//	go run ./tests/bench/ownership -files 1000000
//
// It creates an image of each filesystem and shape with the given number of files, and copies it for every measurement,
// so that each method finds the same bytes. The methods alternate:
//
//	kubelet    one path after the other: lstat, lchown, chmod (kubernetes pkg/volume/volume_linux.go)
//	chown -R   the group only, no permissions: less than what is to be done
//	careful    ours, for files that others may reach meanwhile: every change by a descriptor
//	exclusive  ours, for a device's filesystem that was just mounted and is not published yet
//
// Three cases are measured: the first walk after a mount (cold) and the first walk with all inodes in memory (warm),
// where everything has to be changed; and a second walk where nothing has to be changed. Finally, it stages once more
// with OnRootMismatch, after a mount. Times are of the method, without a sync, as the kubelet makes none. CPU time is
// that of the process and its child, in user and system mode.
//
// Every method except chown must have the kubelet's result: the full table of types, modes and owners is compared, and
// a difference is an error. Times are reported and not asserted.
//
// It needs root. Images are mounted through loop devices that are freed with their mount. The next run removes a killed
// run's leftovers in -dir.
package main
