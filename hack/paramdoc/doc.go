// Command paramdoc generates docs/parameters.md from the parameter structs of every backend, so that the page always
// matches the decoder.
package main
