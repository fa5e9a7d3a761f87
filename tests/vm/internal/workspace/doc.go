// Package workspace is the folder of one run, and the processes that it starts. Its owner holds a lock on the folder: a
// later run ends what a dead one left running, and removes its folder.
package workspace
