// Command testsum runs `go test -json` and reports the results: a line for each package, the output of failures, and
// the totals on the last line. Without a command, it reads the events from its standard input.
//
//	testsum [flags] go test -json -timeout 20m ./pkg/... -seed 7
//
// It exists because of these limits of go test:
//
//   - For go test, a skipped test passes. Here a skip fails the run unless the list given with -skips contains the test
//     and the reason for which it may be skipped. A run in which no test passed fails too.
//   - A failed test is rerun alone, after all others, if few failed. If it then passes, it is FLAKY: it does not fail
//     the run, but the report lists it as a defect. Failures that are never random are not rerun: data races, panics,
//     timeouts, broken invariants, builds, and the early end of a package.
//   - The report given with -report contains, for each failure, its class, its first error, its seed and the command
//     that repeats it.
//
// Specs of Ginkgo suites, such as csi-sanity's, are counted from the suite's own summary line.
package main
