// Package region is an AWS region for tests: the strict API of package ec2 behind the proxy of package faults, on its
// own in-memory network, with instances whose disks are in a directory that simulates /sys/block.
package region
