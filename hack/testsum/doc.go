// Command testsum reads the output of `go test -json` and says how the tests went: a line for each
// package, the output of what failed, and the totals on the last line.
//
// It exists because a skipped test passes, for go test. Here a skip fails the run unless the list given
// with -skips names the test and says why it may be skipped; so does a run in which nothing passed.
// Specs of Ginkgo suites, such as csi-sanity's, are counted from the suite's own summary line.
package main
