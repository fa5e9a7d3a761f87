// Package store keeps what takes long to make, outside the tree, under a name that holds a hash of all that
// it is made from: what is there is right, and what has changed is made anew. Entries appear whole or not at
// all, two processes never make the same one at once, and those not used for long are dropped.
package store
