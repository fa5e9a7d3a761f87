// Command lists measures how csi-attacher's list of all volumes fares with many of them.
//
//	make build
//	go run ./tests/bench/lists -volumes 100000
//
// For each backend it starts the driver's binary, has so many volumes made by calls over its socket, and lists them as
// csi-attacher does with its defaults: no bound on the entries of a page, gRPC's own bound on a message (4 MiB), the
// next page until there is none. Then it starts the driver once more over the same data and lists again. It prints the
// time, the pages, the bytes of the largest page, and the most memory that the driver held meanwhile.
//
// Each volume must be in the list exactly once, or it is an error. Times are reported and not asserted.
package main
