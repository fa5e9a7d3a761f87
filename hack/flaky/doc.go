// Command flaky runs tests repeatedly under a load, to find those that fail by chance before they disturb others.
//
//	flaky -since COMMIT             the tests that were added or changed since the commit
//	flaky -pkg ./pkg/node -run TestX -n 30
//	flaky -pkg ./... -n 3           every package
//	flaky -load-only                the load beside something else
//
// The load is two busy loops and a writer that syncs, like other work on a machine with two cores. The tests run with
// the race detector and in a random order. For every run that failed it prints the order's seed and the file with the
// output, below bin/flaky. The table shows how often each test passed, failed and was skipped. A test that was skipped,
// and may not be according to hack/skips, or that ran fewer times, is a failure.
package main
