// Package smoke lets guests fail, and checks that the host detects it: a kernel that panics or hangs, a killed program,
// a killed run. `make vm-test` runs it before the suites.
package smoke
