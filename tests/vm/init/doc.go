// Command init is the first process of the guest (package qemu boots it). It moves to the guest's disk, mounts the
// usual filesystems, brings the network up, and runs the programs of the job in the folder shared with the host, one
// after another. It sends their output to the host as it is written. Then it powers off.
//
// Process 1 itself only reaps; it starts this program again to do the work. If process 1 ends in another way, the
// kernel panics, and the host sees that on the console.
package main
