// Package up brings a cluster up and takes it down, from the host. Both can be interrupted anywhere and run again: the
// data folder is marked before anything is put into it, the process that holds the cluster waits until it is written
// down which one it is, and a cluster that is not whole is removed before a new one is made.
package up
