// Package store keeps files that take long to build, outside the tree. Their names contain a hash of their inputs, so
// that an existing entry is valid and a changed one is rebuilt. Entries appear atomically, two processes never build
// the same entry at once, and entries that were not used for long are removed.
package store
