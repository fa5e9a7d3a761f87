// Package workspace manages the folder of a run, and the processes that it starts. The run holds a lock on the folder.
// A later run kills the remaining processes of a dead run, and removes its folder.
package workspace
