// Package base64url is base64 for URLs (RFC 4648 section 5, without padding) in which everything has one spelling.
//
// The standard library's decoder passes over line breaks, also when it is strict. Two spellings of one handle would be
// two volumes to whoever compares handles, such as a lock.
package base64url
