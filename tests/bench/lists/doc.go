// Command lists measures csi-attacher's list of all volumes when there are many.
//
//	make build
//	go run ./tests/bench/lists -volumes 100000
//
// For each backend it starts the driver's binary, creates the given number of volumes over its socket, and lists them
// as csi-attacher does with its defaults: no limit on the entries of a page, gRPC's own limit on a message (4 MiB), and
// the next page until there is none. Then it restarts the driver with the same data and lists again. It prints the
// time, the pages, the size of the largest page in bytes, and the driver's peak memory.
//
// A volume that is not in the list exactly once is an error. Times are reported and not asserted.
package main
