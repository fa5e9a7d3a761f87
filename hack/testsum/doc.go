// Command testsum runs `go test -json` and says how the tests went: a line for each package, the output of what failed,
// and the totals on the last line. It reads the events from its standard input where it is given no command.
//
//	testsum [flags] go test -json -timeout 20m ./pkg/... -seed 7
//
// It exists because of what go test does not do:
//
//   - A skipped test passes, for go test. Here a skip fails the run unless the list given with -skips names the test
//     and says why it may be skipped; so does a run in which nothing passed.
//   - A test that fails is run once more, alone, after all the others, if few failed. One that passes then is FLAKY: it
//     does not fail the run, and it stands in the report as the defect that it is. What is never a matter of chance is
//     not run again: data races, panics, time-outs, broken invariants, builds, and whatever ended a package before its
//     tests had ended.
//   - The report given with -report has, for each failure, its class, its first error, its seed and the command that
//     repeats it.
//
// Specs of Ginkgo suites, such as csi-sanity's, are counted from the suite's own summary line.
package main
