// Command flaky runs tests repeatedly under a load, to find those that fail by chance before they disturb others.
//
//	flaky -since COMMIT             the tests that were added or changed since the commit
//	flaky -pkg ./pkg/node -run TestX -n 30
//
// The load is two busy loops and a writer that syncs, like other work on a machine with two cores. The tests run with
// the race detector and in a random order. Every failure is printed with the order's seed. The table shows the number
// of failures of each test.
package main
