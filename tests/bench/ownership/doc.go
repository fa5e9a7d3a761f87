// Command ownership measures how fast the files of a volume are given to a pod's group, beside the kubelet's
// own method and chown(1).
//
//	go run ./tests/bench/ownership -files 1000000
//
// It makes an image of each filesystem and shape with so many files and copies it for every measurement, so
// that each method finds the same bytes. The methods take turns:
//
//	kubelet    one path after the other: lstat, lchown, chmod (kubernetes pkg/volume/volume_linux.go)
//	chown -R   the group only, no permissions: less than what is to be done
//	careful    ours, for files that others may reach meanwhile: every change by a descriptor
//	exclusive  ours, for a device's filesystem that was just mounted and is not published yet
//
// Three cases are measured: the first walk after a mount (cold), the first walk with all inodes in memory
// (warm), where everything has to be changed; and a second walk where nothing has to be. At last it stages
// once more with OnRootMismatch, after a mount. Times are of the method, without a sync, as the kubelet has
// none; CPU time is of the process and its child, in user and system mode.
//
// Every method but chown must leave what the kubelet's leaves: the full table of types, modes and owners is
// compared, and a difference is an error. Times are reported and not asserted.
//
// It needs root. Images are mounted through loop devices that free themselves with their mount; what a
// killed run left in -dir is removed by the next one.
package main
