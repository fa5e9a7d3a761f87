// Package localpools has the pools that tests give the local backend: one of each type below the data directory, as
// nobody has them without a configuration.
package localpools
