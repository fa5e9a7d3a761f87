// Command coverfloor prints the coverage of each package from a profile of `go test -coverprofile`, and fails if a
// floor is not reached.
//
// It exists because `go test -coverpkg` writes a package's blocks once for each test binary. Go's own tools give
// percentages for each binary or for everything, but not for a package over all binaries.
package main
