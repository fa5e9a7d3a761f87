// Package durable changes files so that a crash at any instant leaves the old state or the new one.
//
// It exists because the standard library's file calls guarantee nothing about a power failure: a file that was written
// and closed may be empty afterwards, and a rename may not have happened. No function here rewrites a file in place.
package durable
