// Command coverfloor prints the coverage of each package from a profile of `go test -coverprofile` and
// fails when a floor is not reached.
//
// It exists because `go test -coverpkg` writes a package's blocks once for each test binary, and go's
// own tools give percentages for each binary or for the whole, but none for a package over all binaries.
package main
