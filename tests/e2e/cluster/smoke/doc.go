// Package smoke brings clusters up and takes them down. Pods run, talk to each other and move between nodes. Nothing of
// a cluster is left behind, however it ended. `make cluster-test` runs the tests; the first run builds everything.
package smoke
