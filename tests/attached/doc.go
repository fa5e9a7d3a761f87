// Package attached asks loop devices for their backing files, for tests and tools that check all loop devices of a
// machine.
//
// The filesystem of the attached file answers, and it may be foreign, on a server that does not answer. So a device is
// given up after ten seconds: a device that does not answer by then may not be freed.
package attached
