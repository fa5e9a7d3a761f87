// Package smoke brings clusters up and takes them down: pods run, talk to each other and move between nodes, and
// nothing of a cluster is left behind, however it ended. `make cluster-test` runs it; the first time it builds
// everything.
package smoke
