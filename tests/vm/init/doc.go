// Command init is the first process of the guest (package qemu boots it). It moves to the guest's disk, mounts what
// every Linux has, brings the network up, and runs the programs of the job that it finds in the folder shared with the
// host, one after another. What they write goes to the host as it comes. Then it powers off.
//
// Process 1 itself only reaps: it starts this program again to do the work. When it ends for another reason the
// kernel panics, and the host sees that on the console.
package main
