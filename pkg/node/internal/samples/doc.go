// Package samples makes devices that hold something, one of each kind that a driver may meet and must never
// format. It is for the tests of the packages around it; what it knows of the formats it does not have from them.
package samples
