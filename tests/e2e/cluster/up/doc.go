// Package up brings a cluster up and takes it down, from the host. Both can be interrupted anywhere and run again: the
// data folder is marked before any other file is written, the process that holds the cluster waits until it is
// recorded, and an incomplete cluster is removed before a new one is created.
package up
