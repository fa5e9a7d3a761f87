// Command flaky runs tests again and again beside a load, to find those that fail by chance before they stand in
// others' way.
//
//	flaky -since COMMIT             the tests that were added or changed since the commit
//	flaky -pkg ./pkg/node -run TestX -n 30
//
// The load is two busy loops and a writer that syncs: what a machine with two cores meets beside other work. The tests
// run with the race detector and in a random order. Every failure is printed with the order's seed; the table says how
// often each failed.
package main
