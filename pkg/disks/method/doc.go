// Package method names the ways in which the data of a local volume are made unreadable. It is a leaf, so that who asks
// for a wipe needs nothing of what wipes.
package method
