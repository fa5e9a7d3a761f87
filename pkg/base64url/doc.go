// Package base64url is base64 for URLs (RFC 4648 section 5, without padding) with exactly one spelling for each value.
//
// The standard library's decoder ignores line breaks, even if it is strict. Code that compares handles, such as a lock,
// would take two spellings of one handle for two volumes.
package base64url
