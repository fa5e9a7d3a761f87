// Package region is a region of AWS for tests: the strict API of package ec2 behind the proxy of package faults, on a
// wire of its own, with instances whose disks show in a directory that stands for /sys/block.
package region
