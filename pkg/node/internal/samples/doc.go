// Package samples creates devices with contents, one of each kind that a driver may meet and must never format. It is
// for the tests of the packages around it. Its knowledge of the formats is independent of them.
package samples
