// Command paramdoc writes docs/parameters.md from the parameter structs of every backend, so that the
// page cannot say anything that the decoder does not do.
package main
