// Package smoke lets guests go wrong, and checks that the one who runs them sees it: a kernel that panics, one that
// hangs, a program that is killed, a run that is. `make vm-test` runs it before the suites.
package smoke
