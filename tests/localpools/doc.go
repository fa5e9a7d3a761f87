// Package localpools defines the pools of the local backend in tests: one of each type below the data directory,
// because the backend has no pools without a configuration.
package localpools
