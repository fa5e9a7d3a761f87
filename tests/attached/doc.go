// Package attached asks loop devices what is attached to them, for tests and tools that look through all those of a
// machine.
//
// The filesystem of the attached file answers, and it may be somebody else's, on a server that does not. So a device
// is given up after two seconds: what does not answer by then is nobody's who may free it.
package attached
